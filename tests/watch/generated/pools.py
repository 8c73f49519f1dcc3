"""What JAX and TensorFlow compute on cores for job.py: on threads of their own, for which the first one waits."""
import os
import time

SIDE = 512


def make_step(framework, mode):
    """A step that computes for so many seconds; mode "one": by one thread."""
    if mode == "one":
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return (jax_step if framework == "jax" else tensorflow_step)(mode)


def repeat(one):
    def step(s):
        end = time.perf_counter() + s
        while time.perf_counter() < end:
            one()
    one()
    return step


def jax_step(mode):
    import jax
    import jax.numpy as jnp
    side = SIDE if mode != "one" else SIDE // 2
    x, w = jnp.ones((side, side)), jnp.eye(side)

    @jax.jit
    def f(w):
        return jax.grad(lambda w: jnp.tanh(jnp.tanh(x @ w) @ w).mean())(w)
    return repeat(lambda: f(w).block_until_ready())


def tensorflow_step(mode):
    import tensorflow as tf
    if mode == "one":
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    x, w = tf.ones((SIDE, SIDE)), tf.Variable(tf.eye(SIDE))

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            y = tf.reduce_mean(tf.tanh(tf.tanh(x @ w) @ w))
        return tape.gradient(y, w)
    return repeat(lambda: f().numpy())


def make_retrace(framework):
    """A call that compiles again, since its shape is another one each time."""
    n = [8]

    def of_jax():
        import jax
        import jax.numpy as jnp
        n[0] += 1
        jax.jit(jax.grad(lambda w: sum(jnp.tanh(w @ w).sum() for _ in range(4))))(jnp.ones((n[0], n[0]))).block_until_ready()

    def of_tensorflow():
        import tensorflow as tf
        n[0] += 1
        w = tf.ones((n[0], n[0]))
        tf.function(lambda w: sum(tf.reduce_sum(tf.tanh(w @ w)) for _ in range(4)), jit_compile=True)(w).numpy()
    return of_jax if framework == "jax" else of_tensorflow


def mapped(ms):
    """Records that a map of tf.data prepares one after another, in C++, for about so long each."""
    import tensorflow as tf
    data, tried = tf.random.uniform((256, 256)), 8

    def prepare(n):
        return tf.data.Dataset.range(10 ** 9).map(lambda i: tf.reduce_sum(tf.sort(tf.repeat(data, n, axis=0), axis=1)))
    next(iter(prepare(tried)))
    begin = time.perf_counter()
    next(iter(prepare(tried)))
    each_ms = 1000 * (time.perf_counter() - begin) / tried
    for _ in prepare(max(1, round(ms / each_ms))).prefetch(1):
        yield
