/* The data sets that can be fetched: the whole table. Checksums are the publishers', or those that torchvision checks.
 */
#include "stoker/data/download.h"

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

#define TORONTO "https://www.cs.toronto.edu/~kriz/"
static const stk_download_file cifar10[] = {
    {"cifar-10-binary.tar.gz", TORONTO "cifar-10-binary.tar.gz", 170052171, "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}};

static const stk_download_file cifar100[] = {
    {"cifar-100-binary.tar.gz", TORONTO "cifar-100-binary.tar.gz", 168513733, "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}};

#define FAST_AI "https://s3.amazonaws.com/fast-ai-imageclas/"
static const stk_download_file imagenette[] = {
    {"imagenette2-320.tgz", FAST_AI "imagenette2-320.tgz", 341663724, "md5:3df6f0d01a2c9592104656642f5e78a3"}};

static const stk_download_file imagewoof[] = {
    {"imagewoof2-320.tgz", FAST_AI "imagewoof2-320.tgz", 0, "md5:0f46d997ec2264e97609196c95897a44"}};

static const stk_download_file sst2[] = {
    {"SST-2.zip", "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip", 7439277, "sha256:d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa"}};

#define FILES(list) .file = list, .n_files = sizeof(list) / sizeof(list[0])
static const stk_download_set sets[] = {
    {"mnist", "handwritten digits, 60,000 + 10,000 of 28 x 28 pixels, as IDX", "CC BY-SA 3.0 (LeCun, Cortes, Burges)", FILES(mnist),
     .recipe = "{idx: {images: mnist/train-images-idx3-ubyte.gz, labels: mnist/train-labels-idx1-ubyte.gz}}"},
    {"fashion-mnist", "clothes in the form of MNIST", "MIT (Zalando SE)", FILES(fashion),
     .recipe = "{idx: {images: fashion-mnist/train-images-idx3-ubyte.gz, labels: fashion-mnist/train-labels-idx1-ubyte.gz}}"},
    {"cifar10", "60,000 photographs of 32 x 32 pixels, 10 classes, as PNG in folders train and test", "none stated (Krizhevsky; asks to be cited)",
     FILES(cifar10), STK_DOWNLOAD_CIFAR10, .recipe = "{images: cifar10/train}"},
    {"cifar100", "60,000 photographs of 32 x 32 pixels, 100 classes, as PNG in folders train and test", "none stated (Krizhevsky; asks to be cited)",
     FILES(cifar100), STK_DOWNLOAD_CIFAR100, .recipe = "{images: cifar100/train}"},
    {"imagenette", "9,469 + 3,925 photographs of ten easy classes of ImageNet, short side 320 pixels, JPEG in folders train and val",
     "Apache-2.0 for the selection; ImageNet's terms for the pictures", FILES(imagenette), STK_DOWNLOAD_ARCHIVE, 1, "{images: imagenette/train}"},
    {"imagewoof", "9,025 + 3,929 photographs of ten kinds of dogs, short side 320 pixels, JPEG in folders train and val",
     "Apache-2.0 for the selection; ImageNet's terms for the pictures", FILES(imagewoof), STK_DOWNLOAD_ARCHIVE, 1, "{images: imagewoof/train}"},
    {"glue-sst2", "67,349 phrases and sentences about films, good or bad, as GLUE has them: train.tsv, dev.tsv; test.tsv has no labels",
     "none stated (Socher et al. 2013)", FILES(sst2), STK_DOWNLOAD_ARCHIVE, 1,
     "{csv: {files: glue-sst2/train.tsv, delimiter: tab, quotes: false, fields: {text: {dtype: text, columns: sentence}, label: {dtype: class, columns: label}}}}"},
    {"tinyshakespeare", "1.1 MB of Shakespeare's plays, for character models", "public domain", FILES(shakespeare),
     .recipe = "{text: tinyshakespeare/input.txt}"},
    {"shakespeare", "1.1 MB of Shakespeare's plays as the numbers of its bytes, the last tenth apart, as the recipes shakespeare-* read it",
     "public domain", FILES(shakespeare), STK_DOWNLOAD_TEXT, .recipe = "{tokens: {files: shakespeare/train.bin, length: 128}}"}};
/* clang-format on */

const stk_download_set *stk_download_at(int i)
{
    return i >= 0 && i < (int)(sizeof(sets) / sizeof(sets[0])) ? &sets[i] : 0;
}
