#!/usr/bin/env python3
"""Help, man pages and completions: all from the same tables, for every verb, in the shells that are here.

usage: test_help.py STOKER WORK_FOLDER
"""
import os
import shutil
import subprocess

from program import STOKER, WORK, accepted, check, end, refused, run
from terminal import columns_of, run_in_terminal, too_wide, type_into


def verbs():
    return [line.split() for line in run("help", "--verbs").stdout.splitlines()]


def each_verb_has_its_own_help():
    check(len(verbs()) > 20, f"the verbs: {verbs()}")
    for words in verbs():
        for args in (["help", *words], [*words, "--help"], [*words, "-h"]):
            accepted(args, f"usage: stoker {' '.join(words)}")
    check(run("help", "train").stdout == run("train", "--help").stdout, "help VERB and VERB --help say the same")
    text = run("data", "show", "--help").stdout
    check("--rows" in text and "--seconds" not in text and "bench" not in text, f"data show --help is its own: {text}")
    accepted(["data", "--help"], "verify", "stoker help data VERB says more")
    refused(["help", "trian"], 2, "no verb 'trian' (did you mean 'train'?)")
    refused(["help", "data", "shwo"], 2, "no verb 'data shwo' (did you mean 'show'?)")
    refused(["help", "train", "x"], 2, "'train' has no verb 'x'")
    refused(["data", "lint", "small.yaml", "--rows", "2"], 2, "data lint has no option '--rows'", "stoker data lint --help")


def help_fits_in_80_columns():
    for words in [[], *verbs()]:
        for columns in 80, 60:
            text = run_in_terminal(["help", *words], columns)[1]
            check(not too_wide(text, columns), f"help {' '.join(words)} in {columns} columns: {too_wide(text, columns)}")
        lines = [line for line in run("help", *words).stdout.splitlines() if columns_of(line) > 80]
        check(not lines, f"help {' '.join(words)} without a terminal: {lines}")


def man_pages_are_right():
    have_man = shutil.which("groff")
    for words in [[], *verbs()]:
        page = run("help", "--man", *words)
        name = "-".join(["stoker", *words])
        check(page.returncode == 0 and f"\n{name} ".replace("-", "\\-") in page.stdout,
              f"the man page names itself '{name}': {page.stdout[:200]!r}")
        if not have_man:
            continue
        done = subprocess.run(["groff", "-mandoc", "-Tascii", "-P-cbou", "-ww", "-rLL=78n"], input=page.stdout, text=True,
                              capture_output=True)
        check(done.returncode == 0 and not done.stderr, f"groff says of {name}: {done.stderr}")
        flat = "".join(done.stdout.split())
        for line in run("help", *words).stdout.splitlines():
            option = line.split()[0] if line.startswith("  --") else ""
            check(option in flat, f"the man page {name} has no '{option}'")
    if not have_man:
        print("SKIP man pages in groff: it is not installed")


BASH = """
source stoker.bash || exit 1
complete_line() {  # WORD...: what is offered for the last
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    compopt() { :; }
    _stoker "$1" "${!#}" ""
    printf '%s ' "${COMPREPLY[@]}"
    echo
}
"""


def offered_by_bash(*words):
    quoted = " ".join("'" + word + "'" for word in words)
    done = subprocess.run(["bash", "--norc", "-c", f"{BASH}\ncomplete_line stoker {quoted}"], capture_output=True, text=True)
    check(not done.stderr, f"bash says of 'stoker {quoted}': {done.stderr}")
    return done.stdout.split()


def offered_by_fish(*words):
    line = " ".join(["stoker", *words])
    done = subprocess.run(["fish", "--no-config", "-c", f"source stoker.fish; complete -C '{line}'"],
                          capture_output=True, text=True)
    check(not done.stderr, f"fish says of '{line}': {done.stderr}")
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


def shown_by_zsh(wanted, *words):
    """What is on the screen when somebody types the words and the tabulator twice."""
    setup = "PS1=; autoload -U compinit; compinit -u -D; . ./stoker.zsh; LISTMAX=10000; print REA''DY\n"
    return type_into(["zsh", "-f", "-i"], [("", setup), ("READY", f"stoker {' '.join(words)}\t\t")], wanted)


CASES = [  # the words of a line, the last unfinished; what is offered, what is not
    (["tr"], ["train"], ["eval"]),
    (["data", ""], ["show", "verify"], ["train"]),
    (["data", "show", "--"], ["--rows", "--help"], ["--seconds"]),
    (["train", "--prec"], ["--precision"], ["--seed"]),
    (["train", "--precision", ""], ["bf16"], ["--seed"]),
    (["train", "a.yaml", "--out", ""], ["folder/"], ["a.yaml"]),
    (["train", ""], ["a.yaml"], ["other.txt"]),
    (["eval", ""], ["runs/first"], ["a.yaml"]),
    (["eval", "runs/first", "--checkpoint", ""], ["best", "last"], []),
    (["models", "resn"], ["resnet18"], ["vgg16"]),
    (["get", "dig"], ["digits"], ["cifar10"]),
    (["import", "--names", ""], ["pytorch"], []),
    (["tokenizer", "train", "--ki"], ["--kind"], ["--cased"]),
]


def completions_work_in_shells():
    os.makedirs("runs/first", exist_ok=True)
    os.makedirs("folder", exist_ok=True)
    for name in "a.yaml", "other.txt", "runs/first/recipe.yaml":
        open(name, "w").close()
    for shell in "bash", "zsh", "fish":
        with open(f"stoker.{shell}", "w") as f:
            f.write(accepted(["completion", shell]).stdout)
        script = open(f"stoker.{shell}").read()
        for words in verbs():
            check(" ".join(words) in script or words[-1] in script, f"{shell} knows the verb {words}")
        if not shutil.which(shell):
            print(f"SKIP completions in {shell}: it is not installed")
            continue
        done = subprocess.run([shell, "-n", f"stoker.{shell}"], capture_output=True, text=True)
        check(done.returncode == 0 and not done.stderr, f"{shell} -n: {done.stderr}")
        for words, wanted, others in CASES:
            if shell == "zsh":
                continue
            found = {word.rstrip("/") for word in (offered_by_bash if shell == "bash" else offered_by_fish)(*words)}
            if shell == "fish" and words == ["train", ""]:
                others = [] # fish offers other files, too, behind those that fit
            ok = all(word.rstrip("/") in found for word in wanted) and not any(word in found for word in others)
            check(ok, f"{shell} offers {sorted(found)[:20]} for 'stoker {' '.join(words)}'")
        if shell == "zsh":
            for words, wanted in ((["data", ""], "verify"), (["train", "--prec"], "--precision"),
                                  (["models", "resnet1"], "resnet18")):
                shown = shown_by_zsh(wanted, *words)
                check(wanted in shown, f"zsh shows {shown!r} for 'stoker {' '.join(words)}'")
    refused(["completion", "tcsh"], 2, "no completions for 'tcsh'")


def pages_of_the_build_are_whole():
    """What cmake --install takes: a page for each verb."""
    folder = os.path.join(os.path.dirname(STOKER), "pages")
    if not os.path.exists(f"{folder}/stamp"):
        print("SKIP the build's pages: they are not built")
        return
    wanted = {"stoker.1", *("-".join(["stoker", *words]) + ".1" for words in verbs())}
    check(set(os.listdir(f"{folder}/man1")) == wanted, f"man pages: {os.listdir(f'{folder}/man1')}")
    for file, shell in (("bash-completion/completions/stoker", "bash"), ("zsh/site-functions/_stoker", "zsh"),
                        ("fish/vendor_completions.d/stoker.fish", "fish")):
        check(open(f"{folder}/{file}").read() == run("completion", shell).stdout, f"{file} is what the program prints")


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
os.chdir(WORK)
each_verb_has_its_own_help()
help_fits_in_80_columns()
man_pages_are_right()
completions_work_in_shells()
pages_of_the_build_are_whole()
end()
