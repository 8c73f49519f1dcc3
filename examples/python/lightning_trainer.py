"""PyTorch Lightning, fed by Stoker: Trainer.fit takes the loader as it is.

    python examples/python/lightning_trainer.py        # needs torch and pytorch-lightning (or lightning)
"""

import torch

try:
    import lightning.pytorch as lightning
except ImportError:
    import pytorch_lightning as lightning

from stoker import Dataset
from stoker.torch import DataLoader


class Line(lightning.LightningModule):
    """y = x @ w + b, by gradient descent."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.losses = []

    def training_step(self, batch, i_batch):
        loss = torch.nn.functional.mse_loss(self.layer(batch["x"]), batch["y"])
        self.losses.append(float(loss.detach()))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def main():
    x = torch.randn(512, 3, generator=torch.Generator().manual_seed(1))
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.25
    loader = DataLoader(Dataset.arrays(x=x, y=y), batch_size=32, shuffle=True, drop_last=True)
    model = Line()
    trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    trainer.fit(model, train_dataloaders=loader)
    print("steps %d, loss %.4f to %.6f" % (len(model.losses), model.losses[0], model.losses[-1]))
    return model.losses


if __name__ == "__main__":
    main()
