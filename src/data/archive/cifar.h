/* CIFAR-10 and CIFAR-100 as their makers' binary archives have them (Krizhevsky 2009, "Learning Multiple Layers of
 * Features from Tiny Images"; the layout: www.cs.toronto.edu/~kriz/cifar.html, "Binary version"), written as the
 * folders of images that recipes read: train/CLASS/00000.png. PNG keeps every pixel; a file's number is its place in
 * the archive. Threads: any.
 */
#ifndef STK_DATA_ARCHIVE_CIFAR_H
#define STK_DATA_ARCHIVE_CIFAR_H

#include "data/archive/archive.h"

typedef struct stk_cifar_form {
    const char *train, *test; /* how the names of its files begin: "data_batch_" */
    const char *names;        /* the file of the classes' names, a line each */
    int n_labels, i_label;    /* bytes before the pixels of a record, and which of them is the class */
    int n_classes;
} stk_cifar_form;

extern const stk_cifar_form stk_cifar10, stk_cifar100;

/* folder must be ours alone. progress may be NULL. */
stk_status stk_cifar_unpack(const stk_archive *archive, const stk_cifar_form *form, const char *folder,
                            stk_archive_progress_fn progress, void *user);

#endif
