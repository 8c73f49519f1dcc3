/* Eigenvalues and eigenvectors of small symmetric matrices: Jacobi's method with cyclic sweeps, Golub & Van Loan 2013,
 * section 8.5. In place and in f64; n of a few hundred at most, as the time grows with n^3. Threads: any.
 */
#ifndef STK_TRAIN_EIGEN_H
#define STK_TRAIN_EIGEN_H

#include <stdint.h>

/* a [n,n] symmetric, destroyed: its diagonal becomes the eigenvalues, the largest first. v [n,n]: row i is the
 * eigenvector of eigenvalue i, of length 1. */
void stk_eigen_symmetric(double *a, int64_t n, double *v);

#endif
