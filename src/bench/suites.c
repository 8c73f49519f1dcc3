/* The built-in suites, as texts that are written as a user's own would be: bench/suite.h. */
#include <string.h>

#include "bench/suite.h"

#define FIGURE "pattern: '^([0-9.,]+) '"
#define PART(name, arguments, unit)                                                                                    \
    "  - {name: " name ", run: '{stoker} bench part " arguments "', " FIGURE ", unit: " unit "}\n"

#define TRAIN(name, unit, key)                                                                                         \
    "  - name: train " name "\n"                                                                                       \
    "    run: 'rm -rf {work}/run-" name " && {stoker} train {work}/" name                                              \
    ".yaml --steps 6 --quiet --out {work}/run-" name "'\n"                                                             \
    "    file: '{work}/run-" name "/result.json'\n"                                                                    \
    "    key: " key "\n    unit: " unit "\n"

/* Networks whose samples are random: only time counts. */
#define RECIPE(name, source, rest)                                                                                     \
    "  " name ".yaml: |\n"                                                                                             \
    "    name: " name "\n"                                                                                             \
    "    data: {train: {source: {synthetic: {" source "}}}}\n" rest                                                    \
    "    epochs: 1\n    precision: f32\n    checkpoint: {end: false}\n"

#define RESNET18                                                                                                       \
    RECIPE("resnet18", "fields: {image: [32, 32, 3]}, classes: 10",                                                    \
           "    batch: 16\n    model: {resnet18: {classes: 10, stem: cifar}}\n"                                        \
           "    optimizer: {sgd: {lr: 0.01, momentum: 0.9}}\n")
#define RESNET50                                                                                                       \
    RECIPE("resnet50", "fields: {image: [224, 224, 3]}, classes: 1000",                                                \
           "    batch: 8\n    model: {resnet50: {classes: 1000}}\n    optimizer: {sgd: {lr: 0.01, momentum: 0.9}}\n")
#define GPT2                                                                                                           \
    RECIPE("gpt2", "fields: {tokens: {shape: [256], below: 50257}, targets: {shape: [256], below: 50257}}",            \
           "    batch: 1\n    model: {gpt2: {size: 124m, length: 256}}\n    optimizer: {adamw: {lr: 2e-5}}\n")
#define BERT                                                                                                           \
    RECIPE("bert", "fields: {tokens: {shape: [128], below: 30522}}, classes: 2",                                       \
           "    batch: 4\n    model: {bert: {size: base, classes: 2, length: 128}}\n    optimizer: {adamw: {lr: "      \
           "2e-5}}\n")

#define DIGITS                                                                                                         \
    "  digits.yaml: |\n"                                                                                               \
    "    name: digits\n"                                                                                               \
    "    data:\n"                                                                                                      \
    "      train:\n"                                                                                                   \
    "        source: {images: '{work}/digits/train'}\n"                                                                \
    "        shuffle: true\n"                                                                                          \
    "        stages: [{decode: {channels: 1}}, {normalize: mnist}]\n"                                                  \
    "    batch: 64\n"                                                                                                  \
    "    model: {cnn: {widths: [8, 16]}}\n"                                                                            \
    "    optimizer: {adam: {lr: 0.003}}\n"                                                                             \
    "    epochs: 1\n"                                                                                                  \
    "    checkpoint: {end: false}\n"
#define MAKE_DIGITS "prepare: ['{stoker} get digits --out {work}/digits --train 2000 --test 100']\n"
#define PIPELINE(name, arguments)                                                                                      \
    "  - {name: " name ", run: '{stoker} data bench {work}/" arguments                                                 \
    " --seconds 1 --json', pattern: '\"samples_per_s\": ([0-9.]+)', unit: samples/s}\n"

static const stk_bench_builtin suites[] = {
    {"quick", "processor, memory, storage, decoding, and a small training: some minutes",
     "name: quick\nseconds: 200\nprecision: 2%\nruns: 6\nfiles:\n" RESNET18 DIGITS MAKE_DIGITS
     "cases:\n" PART("matmul f32", "matmul 1024x1024x1024 f32", "GFLOP/s") PART("matmul bf16",
                                                                                "matmul 1024x1024x1024 bf16", "GFLOP/s")
         PART("conv f32", "conv 8x56x56x64x64x3 f32", "GFLOP/s") PART("memory", "memory 64", "GB/s")
             PART("jpeg", "jpeg 480x640", "images/s") PART("storage write", "storage write 64 --folder {work}", "MB/s")
                 PART("storage read", "storage read 64 --folder {work}", "MB/s") PIPELINE("data digits", "digits.yaml")
                     TRAIN("resnet18", "samples/s", "samples_per_s")},
    {"system", "products and convolutions by shape and type, memory, JPEG decoding, storage by pattern",
     "name: system\nseconds: 600\nprecision: 1%\nruns: 10\ncases:\n" PART("matmul 256 f32", "matmul 256x256x256 f32",
                                                                          "GFLOP/s")
         PART("matmul 1024 f32", "matmul 1024x1024x1024 f32", "GFLOP/s")
             PART("matmul 2048 f32", "matmul 2048x2048x2048 f32", "GFLOP/s")
                 PART("matmul 1024 bf16", "matmul 1024x1024x1024 bf16", "GFLOP/s")
                     PART("matmul 1x1024x1024 f32", "matmul 1x1024x1024 f32", "GFLOP/s")
                         PART("conv 56 64 f32", "conv 8x56x56x64x64x3 f32", "GFLOP/s")
                             PART("conv 14 256 f32", "conv 8x14x14x256x256x3 f32", "GFLOP/s")
                                 PART("conv 14 256 bf16", "conv 8x14x14x256x256x3 bf16", "GFLOP/s")
                                     PART("memory all cores", "memory 128", "GB/s")
                                         PART("memory one core", "memory 128 --threads 1", "GB/s")
                                             PART("jpeg 480x640", "jpeg 480x640", "images/s")
                                                 PART("storage write", "storage write 128 --folder {work}", "MB/s")
                                                     PART("storage read", "storage read 128 --folder {work}", "MB/s")
                                                         PART("storage random 4 KiB",
                                                              "storage random 128 --folder {work}", "MB/s")},
    {"data", "input pipelines alone, on data that are made for it",
     "name: data\nseconds: 200\nprecision: 2%\nruns: 8\nfiles:\n" DIGITS MAKE_DIGITS
     "cases:\n" PIPELINE("folder of files", "digits.yaml") PIPELINE("one thread", "digits.yaml --threads 1")},
    {"train", "steps of ResNet-18, ResNet-50, BERT-base and GPT-2 124M on random samples",
     "name: train\nseconds: 1800\nprecision: 2%\nruns: 5\nfiles:\n" RESNET18 RESNET50 BERT GPT2
     "cases:\n" TRAIN("resnet18", "samples/s", "samples_per_s") TRAIN("resnet50", "samples/s", "samples_per_s")
         TRAIN("bert", "tokens/s", "tokens_per_s") TRAIN("gpt2", "tokens/s", "tokens_per_s")},
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
