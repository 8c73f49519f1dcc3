/* Classifies image files with a network that `stoker export RUN --safetensors` wrote: one file holds the weights, the
 * network, the classes and the preprocessing of training. The same answers as `stoker predict RUN FILE`; nothing that
 * trains is linked in.
 *
 *   09_classify model.safetensors cat.png ...
 */
#include <stdio.h>

#include <stoker/train/classify.h>

enum { TOP = 5 };

static int show(stk_classifier *classifier, const char *file)
{
    stk_prediction best[TOP];
    int n;
    if (stk_classifier_predict(classifier, file, best, TOP, &n) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    printf("%s\n", file);
    for (int i = 0; i < n; i++) {
        if (best[i].kind == STK_PREDICTION_NUMBER)
            printf("  %.6g\n", best[i].probability);
        else if (best[i].class_name)
            printf("  %6.2f %%  %s\n", 100 * best[i].probability, best[i].class_name);
        else
            printf("  %6.2f %%  class %lld\n", 100 * best[i].probability, (long long)best[i].class_number);
    }
    return 0;
}

int main(int argc, char **argv)
{
    stk_classifier *classifier;
    int failed = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: 09_classify model.safetensors FILE...\n");
        return 2;
    }
    if (stk_classifier_open(argv[1], NULL, &classifier) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    for (int i = 2; i < argc; i++)
        failed |= show(classifier, argv[i]);
    stk_classifier_close(classifier);
    return failed;
}
