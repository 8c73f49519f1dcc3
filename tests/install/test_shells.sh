#!/bin/sh
# What an installation brings for shells and for man: completions, loaded by the shells themselves and asked for a verb, and pages
# that render without a warning. STOKER_ALL_SHELLS=1: a shell that is absent is a failure.
#   test_shells.sh PREFIX
set -eu
share=$1/share
PATH=$1/bin:$PATH
export PATH
fail() { printf '%s\n' "$*"; exit 1; }

# here PROGRAM: it is here, or what it would show is left out.
here() {
    command -v "$1" >/dev/null && return 0
    [ "${STOKER_ALL_SHELLS-}" != 1 ] || fail "there is no $1"
    echo "SKIP $1: it is not here"
    return 1
}

# Debian's own folder for those of packages, or zsh's.
zsh_files=zsh/vendor-completions
[ -d "$share/$zsh_files" ] && [ -f "$share/$zsh_files/_stoker" ] || zsh_files=zsh/site-functions
for file in bash-completion/completions/stoker $zsh_files/_stoker fish/vendor_completions.d/stoker.fish; do
    [ -s "$share/$file" ] || fail "there is no '$share/$file'"
done

[ -s "$share/man/man1/stoker.1" ] || [ -s "$share/man/man1/stoker.1.gz" ] || fail "there is no page 'stoker' in '$share/man/man1'"

if here bash; then
    # shellcheck disable=SC2016 # bash's variables.
    words=$(bash --norc --noprofile -c '
        . "$0"/bash-completion/completions/stoker || exit 1
        how=$(complete -p stoker) || exit 1
        how=${how#*-F }
        COMP_WORDS=(stoker tr) COMP_CWORD=1 COMP_LINE="stoker tr" COMP_POINT=9
        "${how%% *}" stoker tr stoker
        printf "%s\n" "${COMPREPLY[@]}"' "$share" 2>&1) || fail "bash: $words"
    printf '%s\n' "$words" | grep -q '^train *$' || fail "bash makes of 'stoker tr': $words"
fi

if here zsh; then
    words=$(zsh -f "$(dirname "$0")/complete.zsh" "$share/$zsh_files" 2>&1 </dev/null) || fail "zsh: $words"
fi

if here fish; then
    home=$(mktemp -d) # fish keeps things in it
    words=$(HOME=$home XDG_DATA_DIRS=$share:/usr/local/share:/usr/share fish -c 'complete -C "stoker tr"' 2>&1) || fail "fish: $words"
    rm -rf "$home"
    printf '%s\n' "$words" | grep -q '^train' || fail "fish makes of 'stoker tr': $words"
fi

if here man; then
    for page in "$share"/man/man1/stoker*.1 "$share"/man/man1/stoker*.1.gz; do
        [ -f "$page" ] || continue
        said=$(MANWIDTH=80 man --warnings -P cat -l "$page" 2>&1 >/dev/null) || fail "man: $said"
        [ -z "$said" ] || fail "man says of '$page': $said"
    done
    MANPATH=$share/man MANWIDTH=80 man -P cat stoker 2>&1 | grep -q '^NAME' || fail "man does not find the page 'stoker'"
fi
echo "completions and pages: well"
