/* Written by make_networks.py with torchvision 0.29.2. */
/* clang-format off */
static const float vit_logits[] = {1.9698205, 0.620428562, -0.55635637, -0.260570288, -0.96002686, 1.93806076, 0.690173268, -0.519487262, -0.253269136, -0.935990691};
static const float mobilenet_logits[] = {0.870503664, 1.55250001, 1.80536401, 1.9733932, 0.415390313, 0.870503724, 1.55249989, 1.80536401, 1.9733932, 0.415390372};
/* clang-format on */
