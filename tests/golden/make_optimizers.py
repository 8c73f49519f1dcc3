#!/usr/bin/env python3
"""Writes optimizers_golden.h: five steps of each optimiser that is made of graph nodes, on one matrix.

    python3 make_optimizers.py > optimizers_golden.h        (PyTorch 2.9 or later)

RMSprop, Adagrad and Muon are torch.optim's, Muon with its iteration in f64 instead of bf16; RMSprop like Keras, LAMB (You et al.
2020, algorithm 2) and LARS (You et al. 2017) are written out here. All compute in f64.
"""
import torch
from torch.optim import _muon

torch.manual_seed(5)
STEPS, SHAPE = 5, (4, 6)
cases = []


def rand():
    return torch.rand(*SHAPE, dtype=torch.float32).double() * 2 - 1


def words(x):
    return "{" + ", ".join("%.9g" % v for v in x.flatten().tolist()) + "}"


def record(name, settings, step):
    """step(param, grad, t, state): the parameter after step number t, from 1."""
    param, state = rand(), {}
    first, grads, after = param.clone(), [], []
    for t in range(1, STEPS + 1):
        grads.append(rand())
        param = step(param, grads[-1], t, state)
        after.append(param.clone())
    cases.append(f'    {{"{name}",\n     {settings},\n     {words(first)},\n     {words(torch.stack(grads))},\n'
                 f"     {words(torch.stack(after))}}},")


def of_torch(make):
    def step(param, grad, t, state):
        if not state:
            state["p"] = torch.nn.Parameter(param.clone())
            state["o"] = make([state["p"]])
        state["p"].grad = grad.clone()
        state["o"].step()
        return state["p"].detach().clone()
    return step


def rmsprop_keras(lr, rho, eps, momentum, centered, decay):
    def step(p, g, t, s):
        p = p - p * decay * lr
        s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
        spread = s["v"]
        if centered:
            s["m"] = rho * s.get("m", 0) + (1 - rho) * g
            spread = spread - s["m"] ** 2
        change = lr * g / torch.sqrt(spread + eps)
        if momentum:
            s["b"] = change = momentum * s.get("b", 0) + change
        return p - change
    return step


def lamb(lr, beta1, beta2, eps, decay):
    def step(p, g, t, s):
        s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
        s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
        update = s["m"] / (1 - beta1 ** t) / (torch.sqrt(s["v"] / (1 - beta2 ** t)) + eps) + decay * p
        return p - lr * p.norm() / update.norm() * update
    return step


def lars(lr, momentum, decay, trust, eps):
    def step(p, g, t, s):
        local = trust * p.norm() / (g.norm() + decay * p.norm() + eps)
        s["b"] = momentum * s.get("b", 0) + lr * local * (g + decay * p)
        return p - s["b"]
    return step


def orthogonal(grad, coefficients, n, eps):
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(n):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.size(0) > grad.size(1) else x


_muon._zeropower_via_newtonschulz = orthogonal
O = torch.optim
record("RMSprop", "stk_rmsprop(.lr = 0.01)", of_torch(lambda p: O.RMSprop(p, 0.01)))
record("RMSprop, all options", "stk_rmsprop(.lr = 0.02, .beta2 = 0.9, .eps = 1e-6, .momentum = 0.8, .centered = true, .weight_decay = 0.1)",
       of_torch(lambda p: O.RMSprop(p, 0.02, 0.9, 1e-6, 0.1, 0.8, True)))
record("RMSprop like Keras", "stk_rmsprop(.lr = 0.01, .eps = 1e-3, .like_keras = true)",
       rmsprop_keras(0.01, 0.9, 1e-3, 0, False, 0))
record("RMSprop like Keras, all options",
       "stk_rmsprop(.lr = 0.01, .beta2 = 0.8, .eps = 1e-3, .momentum = 0.7, .centered = true, .weight_decay = 0.2, "
       ".like_keras = true)", rmsprop_keras(0.01, 0.8, 1e-3, 0.7, True, 0.2))
record("Adagrad", "stk_adagrad(.lr = 0.1)", of_torch(lambda p: O.Adagrad(p, 0.1)))
record("Adagrad, decay", "stk_adagrad(.lr = 0.1, .weight_decay = 0.1)",
       of_torch(lambda p: O.Adagrad(p, 0.1, weight_decay=0.1)))
record("LAMB", "stk_lamb(.lr = 0.02, .beta2 = 0.99)", lamb(0.02, 0.9, 0.99, 1e-6, 0.01))
record("LARS", "stk_lars(.lr = 2, .weight_decay = 0.01)", lars(2, 0.9, 0.01, 0.001, 1e-8))
record("Muon", "stk_muon(.lr = 0.02)", of_torch(lambda p: O.Muon(p, 0.02, nesterov=False)))
record("Muon, Nesterov", "stk_muon(.lr = 0.02, .nesterov = true, .momentum = 0.9, .weight_decay = 0.5)",
       of_torch(lambda p: O.Muon(p, 0.02, 0.5, 0.9, nesterov=True)))

print(f"""/* Made by tests/golden/make_optimizers.py with PyTorch {torch.__version__.split('+')[0]}; do not edit. */
/* clang-format off */
static const optimizer_case optimizer_cases[] = {{""")
print("\n".join(c.replace("stk_", "", 0) for c in cases) + "\n};")
