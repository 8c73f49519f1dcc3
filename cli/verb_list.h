/* Every verb, once, in the order of the help: its file's table is cli_<name>. See docs/adding-a-verb.md. */
#ifndef STOKER_CLI_VERB_LIST_H
#define STOKER_CLI_VERB_LIST_H

#define CLI_VERB_LIST(X)                                                                                               \
    X(train)                                                                                                           \
    X(plan)                                                                                                            \
    X(eval)                                                                                                            \
    X(predict)                                                                                                         \
    X(generate)                                                                                                        \
    X(models)                                                                                                          \
    X(data)                                                                                                            \
    X(data_bench)                                                                                                      \
    X(data_show)                                                                                                       \
    X(data_explain)                                                                                                    \
    X(data_lint)                                                                                                       \
    X(data_verify)                                                                                                     \
    X(pack)                                                                                                            \
    X(index)                                                                                                           \
    X(tokenize)                                                                                                        \
    X(tokenizer)                                                                                                       \
    X(tokenizer_train)                                                                                                 \
    X(devices)                                                                                                         \
    X(new)                                                                                                             \
    X(get)                                                                                                             \
    X(watch)                                                                                                           \
    X(bench)                                                                                                           \
    X(bench_compare)                                                                                                   \
    X(bench_cost)                                                                                                      \
    X(bench_part)                                                                                                      \
    X(bench_submit)                                                                                                    \
    X(import)                                                                                                          \
    X(export)                                                                                                          \
    X(report)                                                                                                          \
    X(top)                                                                                                             \
    X(completion)                                                                                                      \
    X(help_verb)

#endif
