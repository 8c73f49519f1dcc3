"""Every public function with handles that are NULL, with nothing in its structs, and with no texts: an error or nothing, and no crash.
   test_null_calls.py CC INCLUDE_FOLDER LIBRARY [FUNCTION]

Each call is a process of its own, twice: with NULL handles and empty texts and structs, and with NULL for every pointer. The second
leaves out GRANTED alone. The calls of WITHOUT_OUT have all that they need but a place for the result, which is STK_INVALID with a text
that says so, or, where the result may be left out, what stands there."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 20

# A stream of random numbers is a value on the caller's stack, and made in inner loops: it is taken for granted.
GRANTED = set("""
stk_rng_below stk_rng_normal stk_rng_u32 stk_rng_uniform
""".split())

# A call's last pointer is missing, and all else is there. Where it is not said what comes, it is STK_INVALID.
WITHOUT_OUT = [
    ("stk_loader_open(set(), NULL, NULL)",),
    ("stk_batch_keep(batch(), NULL)",),
    ("stk_batch_field(batch(), 0, NULL)",),
    ("stk_batch_shape(batch(), \"x\", NULL)",),
    ("stk_loader_get_stages(loader(), NULL, 4)", "0"),
    ("stk_dataset_explain(set(), NULL, NULL)",),
    ("stk_dataset_index_progress(images(), NULL)", "0"),
    ("stk_dataset_transform(images(), jpeg, sizeof(jpeg), NULL)",),
    ("stk_pack_write(images(), \"pack\", NULL, NULL)",),
    ("stk_tokenizer_encode(bytes(), \"ab\", 2, false, NULL, 0, NULL)",),
    ("stk_tokenizer_encode(bytes(), \"ab\", 2, false, NULL, 2, &n)",),
    ("stk_tokenizer_decode(bytes(), ids, 2, false, text, sizeof(text), NULL)",),
    ("stk_tokenizer_decode(bytes(), ids, 2, false, NULL, 2, &n)",),
    ("stk_tokenizer_decode(bytes(), NULL, 2, false, text, sizeof(text), &n)",),
    ("stk_video_get_info(\"a.mp4\", NULL)",),
    ("stk_volume_get_info(\"a.npy\", NULL)",),
    ("stk_safetensors_get(tensors(), \"a\", NULL)",),
    ("stk_safetensors_has(tensors(), \"a\", NULL)", "1"),
]

# What those calls are given. A helper that fails ends its process with 4, which counts as a failure, too.
GIVEN = r"""
static size_t n;
static char text[16];
static const int32_t ids[2] = {97, 98};
static const unsigned char jpeg[4] = {0xff, 0xd8, 0xff, 0xd9};
static void want(bool there)
{
    if (there) return;
    fprintf(stdout, "preparing: %s\n", stk_error_text());
    fflush(stdout);
    _exit(4);
}
static stk_dataset *set(void)
{
    static const float data[4];
    const stk_array_field field = {.name = "x", .dtype = STK_F32, .sample = STK_SHAPE(1), .data = data};
    stk_dataset *made = stk_dataset_arrays(4, &field, 1);
    stk_dataset_batch(made, 2, false);
    want(stk_dataset_status(made) == STK_OK);
    return made;
}
static stk_loader *loader(void)
{
    stk_loader_config config = stk_loader_config_default();
    stk_loader *made = NULL;
    config.n_kept = 1;
    want(stk_loader_open(set(), &config, &made) == STK_OK);
    return made;
}
static const stk_batch *batch(void)
{
    const stk_batch *made = stk_loader_next(loader());
    want(made != NULL);
    return made;
}
static stk_dataset *images(void)
{
    stk_digits_config config = stk_digits_config_default();
    config.n_train = config.n_test = 10;
    if (access("digits", F_OK) != 0) want(stk_digits_generate("digits", &config, NULL, NULL) == STK_OK);
    stk_dataset *made = stk_dataset_images("digits/train");
    want(stk_dataset_status(made) == STK_OK);
    return made;
}
static stk_tokenizer *bytes(void)
{
    stk_tokenizer *made = NULL;
    want(stk_tokenizer_open("bytes", NULL, &made) == STK_OK);
    return made;
}
static stk_safetensors_file *tensors(void)
{
    static const char head[] = "{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}";
    uint64_t n_head = sizeof(head) - 1;
    stk_safetensors_file *made = NULL;
    FILE *file = fopen("a.safetensors", "wb");
    want(file && fwrite(&n_head, 8, 1, file) == 1 && fwrite(head, n_head, 1, file) == 1 && fwrite("\0\0\0", 4, 1, file) == 1);
    fclose(file);
    want(stk_safetensors_open("a.safetensors", &made) == STK_OK);
    return made;
}
static void compare(long long answer, long long wanted)
{
    if (answer == wanted) return;
    fprintf(stdout, "answers %lld, not %lld: ", answer, wanted);
    fflush(stdout);
    _exit(4);
}
static void refuse(stk_status status)
{
    compare(status, STK_INVALID);
    if (strstr(stk_error_text(), "is missing")) return;
    fprintf(stdout, "says '%s': ", stk_error_text());
    fflush(stdout);
    _exit(4);
}
"""

HARNESS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
%(includes)s
/* Room for whatever a call writes, zeros where it reads. */
static union { _Alignas(64) char byte[1 << 20]; } room[8];
static void run(const char *name, void (*call)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(%(seconds)d);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (!freopen("/dev/null", "w", stderr)) _exit(0);
        call();
        _exit(0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) exit(3);
    if (WIFSIGNALED(status)) printf("%%s: %%s\n", name, strsignal(WTERMSIG(status)));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 4) printf("%%s\n", name);
}
%(given)s
%(calls)s
int main(int argc, char **argv)
{
    (void)room;
%(runs)s
    return 0;
}
"""


def read_functions(cc, folder):
    """[(type, name, [parameter types])], macros unfolded; and the structs that have no inside."""
    headers = [path.relative_to(folder) for path in sorted(folder.rglob("*.h")) if path.name != "plugin.h"]
    run = subprocess.run([cc, "-E", "-P", "-x", "c", "-std=c11", f"-I{folder}", "-"], capture_output=True, text=True, check=True,
                         input="".join(f'#include "{path}"\n' for path in headers))
    text = run.stdout
    named = set(re.findall(r"typedef struct \w+ (stk_\w+);", text))
    defined = set(re.findall(r"\}\s*(stk_\w+)\s*;", text)) | set(re.findall(r"struct (stk_\w+)\s*\{", text))
    found = []
    for declaration in declarations(text):
        match = re.match(r"((?:const )?(?:\w+ )*?\w+[ *]+)(stk_\w+)\((.*)\)$", declaration)
        if match and not declaration.startswith("typedef"):
            found.append((match[1].strip(), match[2], split(match[3])))
    return found, named - defined, headers


def declarations(text):
    """What ends in semicolons outside of braces, in one line, without attributes."""
    text = " ".join(line for line in text.splitlines() if not line.startswith("#"))
    depth, part = 0, ""
    for c in text:
        depth += c == "{"
        depth -= c == "}"
        if depth == 0 and (c == ";" or c == "}"):
            part = re.sub(r"\bextern\b|\binline\b", "", " ".join(part.split()))
            yield re.sub(r"__attribute__\s*\(\(([^()]|\([^()]*\))*\)\)", "", part).strip()
            part = ""
        else:
            part += c


def split(text):
    """At the commas that stand in no brackets."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [p for p in parts + [part.strip()] if p and p != "void"]


def argument(parameter, i, handles, is_bare):
    """What is given for a parameter, as C."""
    if parameter == "...":
        return "NULL"
    if "(*" in parameter:
        return "0"
    array = re.search(r"\[\w*\]$", parameter)
    kind = re.sub(r"\[\w*\]$", "", parameter)
    kind = re.sub(r"\b\w+$", "", kind).strip() if re.search(r"[\w\]]\s+\**\w+$|\*\s*\w+$", kind) else kind
    if "*" in kind or array:
        base = kind.replace("const", "").replace("struct", "").replace("*", "").strip()
        if is_bare or (base in handles and kind.count("*") == 1):
            return "NULL"
        if base == "char" and kind.count("*") == 1 and "const" in kind and not array:
            return '""'
        return f"(void *)&room[{i % 8}]"
    return f"({kind}){{0}}"


def main():
    cc, folder, library = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    functions, handles, headers = read_functions(cc, folder)
    calls, runs, n = [], [], 0
    for _, name, parameters in functions:
        if len(sys.argv) > 4 and name != sys.argv[4]:
            continue
        for is_bare in (False, True):
            if is_bare and name in GRANTED:
                continue
            given = [argument(p, i, handles, is_bare) for i, p in enumerate(parameters)]
            calls.append(f"static void call_{n}(void) {{ (void){name}({', '.join(given)}); }}")
            runs.append(f'    run("{name}{" with NULL everywhere" if is_bare else ""}", call_{n});')
            n += 1
    for call, *answer in WITHOUT_OUT:
        if len(sys.argv) > 4 and not call.startswith(sys.argv[4] + "("):
            continue
        check = f"compare({call}, {answer[0]})" if answer else f"refuse({call})"
        calls.append(f"static void call_{n}(void) {{ {check}; }}")
        runs.append(f"    run({json.dumps(call)}, call_{n});")
        n += 1
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "calls.c"
        source.write_text(HARNESS % {"includes": "\n".join(f'#include "{h}"' for h in headers), "calls": "\n".join(calls),
                                     "runs": "\n".join(runs), "seconds": SECONDS, "given": GIVEN})
        subprocess.run([cc, "-w", "-std=gnu11", f"-I{folder}", str(source), "-o", f"{work}/calls", str(library),
                        f"-Wl,-rpath,{library.resolve().parent}"], check=True)
        run = subprocess.run([f"{work}/calls"], capture_output=True, text=True, cwd=work)
    print(run.stdout, end="")
    crashed = run.stdout.count("\n")
    print(f"{len(functions)} functions, {n} calls, {crashed} of them crash or answer otherwise")
    sys.exit(bool(crashed) or run.returncode != 0 or len(functions) < 400)


main()
