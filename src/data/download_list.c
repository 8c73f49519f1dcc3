/* The data sets that can be fetched: the whole table. Checksums are the publishers', or those that torchvision checks.
 */
#include "stoker/download.h"

#define MNIST   "https://ossci-datasets.s3.amazonaws.com/mnist/"
#define FASHION "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"

/* clang-format off */
static const stk_download_file mnist[] = {
    {"train-images-idx3-ubyte.gz", MNIST "train-images-idx3-ubyte.gz", 9912422, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"},
    {"train-labels-idx1-ubyte.gz", MNIST "train-labels-idx1-ubyte.gz",   28881, "md5:d53e105ee54ea40749a09fcbcd1e9432"},
    {"t10k-images-idx3-ubyte.gz",  MNIST "t10k-images-idx3-ubyte.gz",  1648877, "md5:9fb629c4189551a2d022fa330f9573f3"},
    {"t10k-labels-idx1-ubyte.gz",  MNIST "t10k-labels-idx1-ubyte.gz",     4542, "md5:ec29112dd5afa0611ce80d1b7f02629c"}};

static const stk_download_file fashion[] = {
    {"train-images-idx3-ubyte.gz", FASHION "train-images-idx3-ubyte.gz", 26421880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
    {"train-labels-idx1-ubyte.gz", FASHION "train-labels-idx1-ubyte.gz",    29515, "md5:25c81989df183df01b3e8a0aad5dffbe"},
    {"t10k-images-idx3-ubyte.gz",  FASHION "t10k-images-idx3-ubyte.gz",   4422102, "md5:bef4ecab320f06d8554ea6380940ec79"},
    {"t10k-labels-idx1-ubyte.gz",  FASHION "t10k-labels-idx1-ubyte.gz",      5148, "md5:bb300cfdad3c16e7a12a480ee83cd310"}};

static const stk_download_file shakespeare[] = {
    {"input.txt", "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt", 1115394,
     "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}};

#define FILES(list) list, sizeof(list) / sizeof(list[0])
static const stk_download_set sets[] = {
    {"mnist", "handwritten digits, 60,000 + 10,000 of 28 x 28 pixels, as IDX", "CC BY-SA 3.0 (LeCun, Cortes, Burges)", FILES(mnist)},
    {"fashion-mnist", "clothes in the form of MNIST", "MIT (Zalando SE)", FILES(fashion)},
    {"tinyshakespeare", "1.1 MB of Shakespeare's plays, for character models", "public domain", FILES(shakespeare)}};
/* clang-format on */

const stk_download_set *stk_download_at(int i)
{
    return i >= 0 && i < (int)(sizeof(sets) / sizeof(sets[0])) ? &sets[i] : 0;
}
