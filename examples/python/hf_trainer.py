"""Hugging Face's Trainer, fed by Stoker: a subclass gives it the loader.

    python examples/python/hf_trainer.py               # needs torch, transformers and accelerate
"""

import tempfile

import torch
import transformers

from stoker import Dataset
from stoker.torch import DataLoader


class Trainer(transformers.Trainer):
    """The trainer with Stoker's loader in place of PyTorch's; the rest, as steps, schedules and checkpoints, is as it was."""

    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=self._train_batch_size, shuffle=True, drop_last=True, seed=self.args.seed)


def main():
    config = transformers.BertConfig(vocab_size=32, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
                                     max_position_embeddings=16, num_labels=2)
    model = transformers.BertForSequenceClassification(config)
    tokens = torch.randint(0, 32, (512, 16), generator=torch.Generator().manual_seed(1))
    labels = (tokens[:, 0] >= 16).long()  # the first token tells
    data = Dataset.arrays(input_ids=tokens, labels=labels)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=32, num_train_epochs=3, learning_rate=3e-3, logging_steps=1,
                                                   save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
        trainer = Trainer(model, arguments, train_dataset=data)
        trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    print("steps %d, loss %.4f to %.4f" % (trainer.state.global_step, float(losses[0]), float(losses[-1])))
    return [float(loss) for loss in losses]


if __name__ == "__main__":
    main()
