# A zsh in a terminal of its own completes `stoker tra`, as typed: complete.zsh SITE_FUNCTIONS
zmodload zsh/zpty || exit 1

# wait_for TEXT: until the shell has shown it, or a minute is over.
wait_for() {
    local i part
    for i in {1..600}; do
        part=
        while zpty -r -t z part; do shown+=$part; done
        [[ $shown == *$1* ]] && return
        sleep 0.1
    done
    print -r -- "no '$1' in: ${(V)shown}"
    zpty -d z
    exit 1
}

shown=
zpty z "TERM=dumb COLUMNS=1000 zsh -f -i"
zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u; echo '<'\$_comps[stoker]'>'"
wait_for "<_stoker>"
shown=
zpty -w -n z "stoker tra"$'\t'
wait_for "stoker train"
zpty -d z
print complete
