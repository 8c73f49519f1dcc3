/* The built-in suites, as texts that are written as a user's own would be: bench/suite.h. */
#include <string.h>

#include "bench/suite.h"

/* The texts keep a line for each case. */
/* clang-format off */
#define PART(name, arguments, unit, more) \
    "  - {name: '" name "', run: '{stoker} bench part " arguments "', pattern: '^([0-9.,]+) ', unit: " unit ", " more "}\n"
#define ON_DEVICE " --device {device}"

/* Steps of a recipe; the first one with compiling is a column of its own. The folder is another one each time. */
#define TRAIN(name, recipe, options, unit, key, more) \
    "  - name: '" name "'\n" \
    "    run: 'rm -rf {work}/run-" recipe " && {stoker} train {work}/" recipe ".yaml --device {device} " options " --quiet --out {work}/run-" recipe "'\n" \
    "    file: '{work}/run-" recipe "/result.json'\n    key: " key "\n    unit: " unit "\n    " more "\n"
#define LARGEST(recipe, seconds) \
    "  - '{stoker} plan {work}/" recipe ".yaml --device {device} --precision bf16 --largest-batch " seconds " > {work}/" recipe ".batch'\n"
#define BATCH(recipe) "--batch $(cat {work}/" recipe ".batch)"

/* Networks whose samples are random: only time counts. As many as in CIFAR-10, ImageNet, OpenWebText, SST-2 and the Oxford pets. */
#define RECIPE(name, source, rest) \
    "  " name ".yaml: |\n    name: " name "\n    data: {train: {source: {synthetic: {" source "}}}}\n" rest \
    "    epochs: 1\n    checkpoint: {end: false}\n"
#define RESNET18(precision) RECIPE("resnet18", "fields: {image: [32, 32, 3]}, classes: 10, samples: 50000", \
    "    batch: 16\n    model: {resnet18: {classes: 10, stem: cifar}}\n    optimizer: {sgd: {lr: 0.01, momentum: 0.9}}\n    precision: " precision "\n")
#define RESNET50 RECIPE("resnet50", "fields: {image: [224, 224, 3]}, classes: 1000, samples: 1281167", \
    "    batch: 8\n    model: {resnet50: {classes: 1000}}\n    optimizer: {sgd: {lr: 0.01, momentum: 0.9}}\n")
#define GPT2 RECIPE("gpt2", "fields: {tokens: {shape: [256], below: 50257}, targets: {shape: [256], below: 50257}}, samples: 35295243", \
    "    batch: 1\n    model: {gpt2: {size: 124m, length: 256}}\n    optimizer: {adamw: {lr: 2e-5}}\n")
#define BERT RECIPE("bert", "fields: {tokens: {shape: [128], below: 30522}}, classes: 2, samples: 67349", \
    "    batch: 4\n    model: {bert: {size: base, classes: 2, length: 128}}\n    optimizer: {adamw: {lr: 2e-5}}\n")
#define UNET RECIPE("unet", "fields: {image: [128, 128, 3], mask: {shape: [128, 128], below: 2}}, samples: 3680", \
    "    batch: 2\n    model: {unet: {classes: 2}}\n    optimizer: {adam: {lr: 0.001}}\n")
#define CLICKS \
    "  clicks.yaml: |\n    name: clicks\n    data:\n      train:\n        source:\n          csv:\n" \
    "            files: '{work}/clicks/train.csv'\n" \
    "            fields: {user: i32, item: i32, x: {dtype: f32, columns: [x0, x1, x2, x3]}, label: f32}\n" \
    "    batch: 256\n    model: {wide_and_deep: {categories: {user: 200, item: 100}, numbers: x, width: 64, hidden: [512, 256]}}\n" \
    "    loss: bce\n    optimizer: {adam: {lr: 0.001}}\n    epochs: 1\n    checkpoint: {end: false}\n"

#define DIGITS \
    "  digits.yaml: |\n    name: digits\n    data:\n      train:\n        source: {images: '{work}/digits/train'}\n" \
    "        shuffle: true\n        stages: [{decode: {channels: 1}}, {normalize: mnist}]\n" \
    "    batch: 64\n    model: {cnn: {widths: [8, 16]}}\n    optimizer: {adam: {lr: 0.003}}\n    epochs: 1\n    checkpoint: {end: false}\n"
#define PHOTOS \
    "  photos.yaml: |\n    name: photos\n    data:\n      train:\n        source: {images: '{work}/photos/train'}\n        shuffle: true\n" \
    "        stages: [decode, {random_resized_crop: 160}, random_flip, {color_jitter: {brightness: 0.2, contrast: 0.2}}, {normalize: imagenet}]\n" \
    "    batch: 32\n    model: {cnn: {widths: [8, 16]}}\n    optimizer: {adam: {lr: 0.003}}\n    epochs: 1\n"
#define MNIST_ARRAYS \
    "  arrays.yaml: |\n    name: arrays\n    data: {train: {source: {synthetic: {fields: {image: [28, 28, 1]}, classes: 10}}, shuffle: true}}\n" \
    "    batch: 128\n    model: {mlp: {hidden: [16], classes: 10}}\n    optimizer: {adam: {lr: 0.003}}\n    epochs: 1\n"
#define TABLE \
    "  table.yaml: |\n    name: table\n    data:\n      train:\n        source:\n          csv:\n            files: '{work}/clicks/train.csv'\n" \
    "            fields: {user: i32, item: i32, x: {dtype: f32, columns: [x0, x1, x2, x3]}, label: f32}\n        shuffle: true\n" \
    "    batch: 256\n    model: {wide_and_deep: {categories: {user: 200, item: 100}, numbers: x}}\n    loss: bce\n    optimizer: {adam: {lr: 0.003}}\n    epochs: 1\n"
#define GET_DIGITS "  - '{stoker} get digits --out {work}/digits --train 2000 --test 100'\n"
#define GET_PHOTOS "  - '{stoker} get digits --out {work}/photos --train 300 --test 10 --size 256'\n"
#define GET_CLICKS(n) "  - '{stoker} get clicks --out {work}/clicks --train " n " --test 100'\n"
#define PIPELINE(name, arguments, more) \
    "  - {name: '" name "', run: '{stoker} data bench {work}/" arguments " --seconds 1 --json', pattern: '\"samples_per_s\": ([0-9.]+)', unit: samples/s, " more "}\n"

/* A whole training that must end at what it says, with another seed each run: its time is the time to that. */
#define REACH(name, recipe, more) \
    "  - name: '" name "'\n" \
    "    run: 'rm -rf {work}/run-" recipe " && {stoker} train {work}/" recipe ".yaml --device {device} --seed $STOKER_BENCH_RUN --quiet --out {work}/run-" recipe "'\n" \
    "    file: '{work}/run-" recipe "/result.json'\n    key: wall_s\n    unit: s\n    better: less\n    " more "\n"
#define MNIST \
    "  mnist.yaml: |\n    name: mnist\n    data:\n      train:\n        source:\n" \
    "          idx: {images: mnist/train-images-idx3-ubyte.gz, labels: mnist/train-labels-idx1-ubyte.gz}\n" \
    "        shuffle: true\n        stages: [{scale: 1/255}]\n      test:\n        source:\n" \
    "          idx: {images: mnist/t10k-images-idx3-ubyte.gz, labels: mnist/t10k-labels-idx1-ubyte.gz}\n        stages: [{scale: 1/255}]\n" \
    "    batch: 128\n    model:\n      layers: [flatten, {dense: 128}, relu, {dropout: 0.2}, {dense: 10}]\n    optimizer: {adam: {lr: 0.005}}\n" \
    "    schedule: cosine\n    epochs: 5\n    expect: test_accuracy >= 0.975\n    checkpoint: {end: false}\n"
#define SHAKESPEARE \
    "  shakespeare.yaml: |\n    name: shakespeare\n    data:\n      train:\n" \
    "        source: {tokens: {files: shakespeare/train.bin, length: 128, stride: 64}}\n        shuffle: true\n        remainder: drop\n" \
    "      test:\n        source: {tokens: {files: shakespeare/valid.bin, length: 128}}\n" \
    "    batch: 16\n    model: {gpt2: {size: mini, layers: 4, heads: 4, width: 192, vocabulary: 257, positions: 128}}\n" \
    "    optimizer: {adamw: {lr: 2e-3, beta2: 0.99, weight_decay: 0.1}}\n    schedule: {cosine: {warmup: 0.1, final: 0.05}}\n" \
    "    clip_norm: 1\n    no_decay: [bias, norm]\n    epochs: 1\n    expect: test_loss <= 1.85\n    checkpoint: {end: false}\n"
#define AIRBENCH(epochs, accuracy) \
    "  airbench.yaml: |\n    name: airbench\n    data:\n      train:\n        source: {images: cifar10/train}\n        shuffle: true\n" \
    "        stages: [decode, {random_crop: {size: 32, pad: 2, border: reflect}}, {random_flip: {alternate: true}}, {normalize: cifar10}]\n" \
    "      test:\n        source: {images: cifar10/test}\n        stages: [decode, {normalize: cifar10}]\n" \
    "    batch: 1024\n    model:\n      layers:\n        - conv2d: {filters: 24, kernel: 2, padding: none, init: zero}\n        - gelu\n" \
    AIR_BLOCK("block1", "64") AIR_BLOCK("block2", "256") AIR_BLOCK("block3", "256") \
    "        - max_pool: 3\n        - flatten\n        - dense: {units: 10, bias: false}\n        - scale: 0.1111111111\n" \
    "    whiten: {layer: conv2d, samples: 5000, eps: 5e-4}\n    freeze: [conv2d.weight]\n    loss: {cross_entropy: {smoothing: 0.2}}\n" \
    "    optimizer: {sgd: {lr: 1.5, momentum: 0.85, nesterov: true, weight_decay: 1.3304e-3}}\n" \
    "    groups:\n      - {match: ['*.batch_norm*.bias'], lr: 64, weight_decay: 2.0788e-5}\n      - {match: [conv2d.bias], until: 3}\n" \
    "    schedule: {triangle: {first: 0.2, peak: 0.23, final: 0.07}}\n    lookahead: {every: 5, alpha: 0.22622, power: 3}\n" \
    "    tta: {flip: true, shift: 1}\n    epochs: " epochs "\n    precision: bf16\n    expect: test_accuracy >= " accuracy "\n    checkpoint: {end: false}\n"
#define GET_CIFAR "  - '[ -e \"${STOKER_DATA:-data}/cifar10\" ] || {stoker} get cifar10'\n"
#define AIR_NORM "{batch_norm: {momentum: 0.4, eps: 1e-12, scale: false}}, gelu"
#define AIR_BLOCK(name, n) \
    "        - block:\n            scope: " name "\n            layers: [{conv2d: {filters: " n ", bias: false, init: dirac}}, {max_pool: 2}, " \
    AIR_NORM ", {conv2d: {filters: " n ", bias: false, init: dirac}}, " AIR_NORM "]\n"

/* Replicas of one thread each; strong: 64 images for all, weak: 32 for each. */
#define SCALE(mode, n, batch) \
    TRAIN(mode " " n, "resnet18", "--steps 8 --replicas " n " --threads " n " --batch " batch, "samples/s", "samples_per_s", \
          "scaling: " mode "\n    replicas: " n "\n    cores: " n "\n    precision: f32\n    about: ResNet-18 on 32x32 images in f32, " n " replicas of one thread, batch " batch)
#define SCALE_HEAD "precision: 2%\nruns: 6\nfiles:\n" RESNET18("f32") "cases:\n"

static const char quick[] =
    "name: quick\nseconds: 200\nprecision: 2%\nruns: 6\nfiles:\n" RESNET18("f32") DIGITS
    "prepare:\n" GET_DIGITS "cases:\n"
    PART("matmul f32", "matmul 1024x1024x1024 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'product of two matrices of 1024 x 1024 in 32 bits: what the device computes at best'")
    PART("matmul bf16", "matmul 1024x1024x1024 bf16" ON_DEVICE, "GFLOP/s", "precision: bf16, about: 'the same in 16 bits, in which networks are mostly trained'")
    PART("conv f32", "conv 8x56x56x64x64x3 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'a convolution of ResNet-50 in 32 bits'")
    PART("memory", "memory 64", "GB/s", "about: 'reading and writing of main memory by all cores'")
    PART("jpeg", "jpeg 480x640", "images/s", "about: 'photographs of 640 x 480 decoded by one core'")
    PART("storage write", "storage write 64 --folder {work}", "MB/s", "about: 'a file written, until it is on the disk'")
    PART("storage read", "storage read 64 --folder {work}", "MB/s", "about: 'a file read from the disk in a row'")
    PIPELINE("data digits", "digits.yaml", "about: 'small JPEG files read, decoded and normalised by all cores: what an input pipeline delivers'")
    TRAIN("train resnet18", "resnet18", "--steps 6", "samples/s", "samples_per_s", "precision: f32\n    about: 'steps of ResNet-18 on images of 32 x 32, batch 16, in 32 bits'");

static const char system_suite[] =
    "name: system\nseconds: 600\nprecision: 1%\nruns: 10\ncases:\n"
    PART("matmul 256 f32", "matmul 256x256x256 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'a small product'")
    PART("matmul 1024 f32", "matmul 1024x1024x1024 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'a product of the size of small layers'")
    PART("matmul large f32", "matmul {side}x{side}x{side} f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'a large product: the peak in 32 bits'")
    PART("matmul 1024 bf16", "matmul 1024x1024x1024 bf16" ON_DEVICE, "GFLOP/s", "precision: bf16, about: 'a product in 16 bits'")
    PART("matmul large bf16", "matmul {side}x{side}x{side} bf16" ON_DEVICE, "GFLOP/s", "precision: bf16, about: 'a large one: the peak in 16 bits'")
    PART("matmul 1x1024x1024 f32", "matmul 1x1024x1024 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'a matrix by one row, as when text is generated: memory counts'")
    PART("conv 56 64 f32", "conv 8x56x56x64x64x3 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'an early convolution of ResNet-50'")
    PART("conv 14 256 f32", "conv 8x14x14x256x256x3 f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'a late one'")
    PART("conv 14 256 bf16", "conv 8x14x14x256x256x3 bf16" ON_DEVICE, "GFLOP/s", "precision: bf16, about: 'the late one in 16 bits'")
    PART("memory all cores", "memory 128", "GB/s", "about: 'reading and writing of main memory by all cores'")
    PART("memory one core", "memory 128 --threads 1", "GB/s", "about: 'the same by one core'")
    PART("copy in", "copy 64 in" ON_DEVICE, "GB/s", "limit: link, about: 'from the host to the device: PCIe or NVLink; on a device of the host, a copy in memory'")
    PART("copy out", "copy 64 out" ON_DEVICE, "GB/s", "limit: link, about: 'the way back'")
    PART("copy on", "copy 64 on" ON_DEVICE, "GB/s", "about: 'within the memory of the device: each byte is read and written'")
    PART("copy to another", "copy 64 to --to {other}" ON_DEVICE, "GB/s", "devices: 2, about: 'to another device of the kind, over NVLink or PCIe where they reach each other, else by way of the host'")
    PART("all-reduce", "allreduce 16 --threads {cores}", "GB/s", "about: '16 MiB of gradients added up over as many replicas as cores, in one process'")
    PART("jpeg 480x640", "jpeg 480x640", "images/s", "about: 'photographs of 640 x 480 decoded by one core'")
    PART("storage write", "storage write 128 --folder {work}", "MB/s", "about: 'a file written, until it is on the disk'")
    PART("storage read", "storage read 128 --folder {work}", "MB/s", "about: 'a file read from the disk in a row'")
    PART("storage random 4 KiB", "storage random 128 --folder {work}", "MB/s", "about: 'pieces of 4 KiB read from the disk in random order'");

static const char data[] =
    "name: data\nseconds: 240\nprecision: 2%\nruns: 8\nfiles:\n" DIGITS PHOTOS TABLE MNIST_ARRAYS
    "prepare:\n" GET_DIGITS GET_PHOTOS GET_CLICKS("20000") "cases:\n"
    PIPELINE("small files", "digits.yaml", "about: 'JPEG files of 28 x 28, all cores'")
    PIPELINE("small files, one thread", "digits.yaml --threads 1", "about: 'the same by one thread'")
    PIPELINE("large files", "photos.yaml", "about: 'JPEG files of 256 x 256, cropped, resized, flipped and recoloured, all cores'")
    PIPELINE("large files, one thread", "photos.yaml --threads 1", "about: 'the same by one thread'")
    PIPELINE("table", "table.yaml", "about: 'rows of a CSV file, shuffled'")
    PIPELINE("arrays", "arrays.yaml", "about: 'arrays in memory, shuffled: what the loader itself takes'");

static const char train[] =
    "name: train\nseconds: 2400\nprecision: 2%\nruns: 5\nfiles:\n" RESNET50 BERT GPT2 UNET CLICKS
    "prepare:\n" GET_CLICKS("300000") LARGEST("resnet50", "10") LARGEST("bert", "10") LARGEST("gpt2", "10") LARGEST("unet", "10") LARGEST("clicks", "1")
    "  - 'b=$(cat {work}/clicks.batch); echo $((b < 65536 ? b : 65536)) > {work}/clicks.batch'\n"
    "cases:\n"
    PART("matmul f32", "matmul {side}x{side}x{side} f32" ON_DEVICE, "GFLOP/s", "precision: f32, about: 'the peak in 32 bits, as measured'")
    PART("matmul bf16", "matmul {side}x{side}x{side} bf16" ON_DEVICE, "GFLOP/s", "precision: bf16, about: 'the peak in 16 bits, as measured'")
    PART("memory", "memory 128", "GB/s", "about: 'main memory by all cores'")
    TRAIN("resnet50 f32", "resnet50", "--steps 4 --precision f32", "samples/s", "samples_per_s", "precision: f32\n    about: 'ResNet-50 on images of 224 x 224, batch 8, in 32 bits'")
    TRAIN("resnet50 bf16", "resnet50", "--steps 4 --precision bf16", "samples/s", "samples_per_s", "precision: bf16\n    about: 'the same with products in 16 bits'")
    TRAIN("resnet50 bf16, largest batch", "resnet50", "--steps 4 --precision bf16 " BATCH("resnet50"), "samples/s", "samples_per_s", "precision: bf16\n    about: 'the same with the largest batch that fits, and whose step takes no more than some 10 s'")
    TRAIN("bert f32", "bert", "--steps 4 --precision f32", "tokens/s", "tokens_per_s", "precision: f32\n    about: 'BERT-base on 128 tokens, batch 4, in 32 bits'")
    TRAIN("bert bf16", "bert", "--steps 4 --precision bf16", "tokens/s", "tokens_per_s", "precision: bf16\n    about: 'the same with products in 16 bits'")
    TRAIN("bert bf16, largest batch", "bert", "--steps 4 --precision bf16 " BATCH("bert"), "tokens/s", "tokens_per_s", "precision: bf16\n    about: 'the same with the largest batch'")
    TRAIN("gpt2 f32", "gpt2", "--steps 4 --precision f32", "tokens/s", "tokens_per_s", "precision: f32\n    about: 'GPT-2 124M on 256 tokens, batch 1, in 32 bits'")
    TRAIN("gpt2 bf16", "gpt2", "--steps 4 --precision bf16", "tokens/s", "tokens_per_s", "precision: bf16\n    about: 'the same with products in 16 bits'")
    TRAIN("gpt2 bf16, largest batch", "gpt2", "--steps 4 --precision bf16 " BATCH("gpt2"), "tokens/s", "tokens_per_s", "precision: bf16\n    about: 'the same with the largest batch'")
    TRAIN("unet f32", "unet", "--steps 4 --precision f32", "samples/s", "samples_per_s", "precision: f32\n    about: 'a U-Net on images of 128 x 128, batch 2, in 32 bits'")
    TRAIN("unet bf16", "unet", "--steps 4 --precision bf16", "samples/s", "samples_per_s", "precision: bf16\n    about: 'the same with products in 16 bits'")
    TRAIN("unet bf16, largest batch", "unet", "--steps 4 --precision bf16 " BATCH("unet"), "samples/s", "samples_per_s", "precision: bf16\n    about: 'the same with the largest batch'")
    TRAIN("recommender f32", "clicks", "--steps 60 --precision f32", "samples/s", "samples_per_s", "precision: f32\n    about: 'a wide and deep network on rows of clicks, batch 256: small products, and its input counts'")
    TRAIN("recommender bf16", "clicks", "--steps 60 --precision bf16", "samples/s", "samples_per_s", "precision: bf16\n    about: 'the same with products in 16 bits'")
    TRAIN("recommender bf16, largest batch", "clicks", "--steps 4 --precision bf16 " BATCH("clicks"), "samples/s", "samples_per_s", "precision: bf16\n    about: 'the same with the largest batch whose step takes no more than some 1 s, 65,536 at most'");

static const char quality[] =
    "name: quality\nseconds: 3600\nprecision: 5%\nruns: 3\nwarmup: 0\nfiles:\n" MNIST SHAKESPEARE AIRBENCH("2", "0.78")
    "prepare:\n  - '[ -e \"${STOKER_DATA:-data}/mnist\" ] || {stoker} get mnist'\n"
    "  - '[ -e \"${STOKER_DATA:-data}/shakespeare\" ] || {stoker} get shakespeare'\n" GET_CIFAR "cases:\n"
    REACH("mnist to 97.5 %", "mnist", "about: 'a network of two layers trained on MNIST until it has learned 5 epochs; it must tell 97.5 % of the test digits; the time of training alone, another seed each run'")
    REACH("gpt to a loss of 1.85", "shakespeare", "about: 'a small GPT on Shakespeare by characters, one epoch; its loss on text that it has not seen must be 1.85 or less; the time of training alone, another seed each run'")
    REACH("airbench to 78 %", "airbench", "precision: bf16\n    about: 'the network of airbench94 on CIFAR-10, two epochs; it must tell 78 % of the test images; the time of training alone, another seed each run'");

static const char airbench[] =
    "name: airbench\nseconds: 1800\nprecision: 5%\nruns: 3\nwarmup: 0\nfiles:\n" AIRBENCH("10", "0.902")
    "prepare:\n" GET_CIFAR "cases:\n"
    REACH("airbench to 90.2 %", "airbench", "precision: bf16\n    about: 'airbench94 on CIFAR-10, ten epochs; it must tell 90.2 % of the test images; the time of training alone, another seed each run'");

static const char scaling[] =
    "name: scaling\nseconds: 600\n" SCALE_HEAD
    SCALE("strong", "1", "64") SCALE("strong", "2", "64") SCALE("strong", "4", "64") SCALE("strong", "8", "64") SCALE("strong", "16", "64")
    SCALE("weak", "1", "32") SCALE("weak", "2", "64") SCALE("weak", "4", "128") SCALE("weak", "8", "256") SCALE("weak", "16", "512");
/* clang-format on */

static const stk_bench_builtin suites[] = {
    {"quick", "processor, memory, storage, decoding, and a small training: some minutes", quick},
    {"system", "products and convolutions by shape and type, memory, copies, all-reduce, JPEG decoding, storage",
     system_suite},
    {"data", "input pipelines alone, on data that are made for it", data},
    {"train", "ResNet-50, BERT-base, GPT-2 124M, U-Net and a recommender, in f32 and bf16, with the largest batch",
     train},
    {"quality", "time and energy until a network has learned what it must, with another seed each run", quality},
    {"airbench", "the same for CIFAR-10 by airbench94: for fast devices, hours on a few cores", airbench},
    {"scaling", "1, 2, 4, ... replicas of one thread, as many as there are cores: on the same work, and on more of it",
     scaling},
};

const stk_bench_builtin *stk_bench_builtin_at(int i)
{
    return i >= 0 && i < (int)(sizeof(suites) / sizeof(suites[0])) ? &suites[i] : NULL;
}

const stk_bench_builtin *stk_bench_builtin_find(const char *name)
{
    const stk_bench_builtin *suite;
    for (int i = 0; (suite = stk_bench_builtin_at(i)); i++)
        if (!strcmp(suite->name, name)) return suite;
    return NULL;
}
