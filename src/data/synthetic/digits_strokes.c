/* See data/synthetic/digits_strokes.h. */
#include "data/synthetic/digits_strokes.h"

#include <stddef.h>

#define UP                                                                                                             \
    {                                                                                                                  \
        STK_PEN_UP, 0                                                                                                  \
    }

/* clang-format off */
static const stk_glyph_point zero_oval[] = {{52,4},{26,14},{12,50},{24,86},{50,96},{76,86},{88,50},{76,14},{50,4},UP};
static const stk_glyph_point zero_narrow[] = {{62,6},{36,12},{22,46},{27,84},{48,96},{72,80},{79,44},{68,12},{50,8},UP};
static const stk_glyph_point zero_open[] = {{60,12},{32,12},{14,48},{24,86},{52,96},{80,78},{85,38},{66,10},{42,14},UP};

static const stk_glyph_point one_bar[] = {{50,4},{50,36},{50,66},{50,96},UP};
static const stk_glyph_point one_flag[] = {{30,26},{54,4},{54,4},{54,50},{54,96},UP};
static const stk_glyph_point one_base[] = {{32,22},{52,4},{52,4},{52,50},{52,95},UP,{28,96},{52,96},{76,95},UP};

static const stk_glyph_point two_flat[] = {{16,26},{28,8},{52,4},{76,14},{78,36},{56,62},{16,94},{16,94},{50,95},{86,94},UP};
static const stk_glyph_point two_loop[] = {{20,24},{40,5},{68,10},{76,32},{58,62},{30,88},{16,86},{26,74},{46,82},{64,94},{86,88},UP};
static const stk_glyph_point two_wide[] = {{18,16},{48,5},{78,18},{74,42},{46,70},{18,92},{18,92},{50,88},{84,94},UP};

static const stk_glyph_point three_round[] = {{18,14},{46,4},{74,14},{72,36},{44,48},{44,48},{76,58},{80,82},{52,97},{18,88},UP};
static const stk_glyph_point three_flat[] = {{20,6},{50,6},{78,6},{78,6},{46,42},{46,42},{78,56},{78,84},{48,97},{16,86},UP};
static const stk_glyph_point three_soft[] = {{22,20},{40,5},{66,8},{74,26},{60,42},{42,47},{66,52},{80,70},{68,92},{42,97},{18,84},UP};

static const stk_glyph_point four_open[] = {{24,6},{20,30},{16,56},{16,56},{50,56},{84,55},UP,{66,6},{66,50},{66,96},UP};
static const stk_glyph_point four_closed[] = {{64,4},{38,36},{12,64},{12,64},{50,64},{88,64},UP,{64,4},{63,50},{62,96},UP};
static const stk_glyph_point four_swung[] = {{22,8},{18,34},{28,52},{52,54},{76,44},UP,{76,6},{70,50},{66,96},UP};

static const stk_glyph_point five_corner[] = {{78,6},{54,6},{28,6},{28,6},{24,44},{24,44},{52,36},{78,54},{78,80},{50,97},{18,88},UP};
static const stk_glyph_point five_hat[] = {{30,8},{24,44},{24,44},{50,38},{76,56},{74,84},{46,97},{16,86},UP,{30,8},{54,7},{80,6},UP};
static const stk_glyph_point five_soft[] = {{74,8},{42,8},{32,24},{34,42},{60,50},{76,68},{64,92},{36,96},{18,86},UP};

static const stk_glyph_point six_bent[] = {{68,4},{36,24},{18,64},{30,92},{56,96},{78,80},{70,58},{46,54},{22,70},UP};
static const stk_glyph_point six_straight[] = {{56,4},{30,40},{18,74},{34,95},{62,94},{76,76},{60,58},{38,60},{22,78},UP};
static const stk_glyph_point six_curled[] = {{78,12},{52,6},{26,36},{18,70},{36,96},{66,92},{78,70},{58,52},{30,64},UP};

static const stk_glyph_point seven_plain[] = {{16,8},{48,8},{82,8},{82,8},{60,50},{42,96},UP};
static const stk_glyph_point seven_barred[] = {{16,8},{48,8},{82,8},{82,8},{62,50},{44,96},UP,{34,52},{54,51},{76,50},UP};
static const stk_glyph_point seven_serif[] = {{16,22},{18,8},{18,8},{50,10},{84,6},{84,6},{58,46},{46,96},UP};

static const stk_glyph_point eight_cross[] = {{72,16},{50,4},{28,16},{30,34},{52,48},{76,64},{74,88},{50,97},{24,88},{24,66},{48,48},{70,34},{72,16},UP};
static const stk_glyph_point eight_rings[] = {{50,4},{29,13},{29,37},{50,46},{71,37},{71,13},{50,4},UP,{50,46},{22,59},{22,86},{50,97},{78,86},{78,59},{50,46},UP};
static const stk_glyph_point eight_open[] = {{76,10},{46,6},{28,22},{44,44},{70,62},{72,88},{46,97},{24,82},{36,60},{62,40},{80,12},UP};

static const stk_glyph_point nine_bent[] = {{74,22},{54,6},{28,14},{22,38},{42,52},{66,44},{76,20},{76,20},{74,60},{66,96},UP};
static const stk_glyph_point nine_straight[] = {{70,28},{62,8},{36,8},{24,30},{38,50},{62,46},{72,24},{72,24},{72,60},{72,96},UP};
static const stk_glyph_point nine_tailed[] = {{76,24},{50,4},{26,20},{30,46},{56,52},{76,30},{78,20},{76,62},{56,94},{26,90},UP};
/* clang-format on */

#define GLYPH(digit, name)                                                                                             \
    {                                                                                                                  \
        digit, (int)(sizeof(name) / sizeof((name)[0])), name                                                           \
    }

enum { N_VARIANTS = 3 };
static const stk_glyph glyphs[10][N_VARIANTS] = {
    {GLYPH(0, zero_oval), GLYPH(0, zero_narrow), GLYPH(0, zero_open)},
    {GLYPH(1, one_bar), GLYPH(1, one_flag), GLYPH(1, one_base)},
    {GLYPH(2, two_flat), GLYPH(2, two_loop), GLYPH(2, two_wide)},
    {GLYPH(3, three_round), GLYPH(3, three_flat), GLYPH(3, three_soft)},
    {GLYPH(4, four_open), GLYPH(4, four_closed), GLYPH(4, four_swung)},
    {GLYPH(5, five_corner), GLYPH(5, five_hat), GLYPH(5, five_soft)},
    {GLYPH(6, six_bent), GLYPH(6, six_straight), GLYPH(6, six_curled)},
    {GLYPH(7, seven_plain), GLYPH(7, seven_barred), GLYPH(7, seven_serif)},
    {GLYPH(8, eight_cross), GLYPH(8, eight_rings), GLYPH(8, eight_open)},
    {GLYPH(9, nine_bent), GLYPH(9, nine_straight), GLYPH(9, nine_tailed)},
};

const stk_glyph *stk_glyphs_of(int digit, int *n_variants)
{
    *n_variants = N_VARIANTS;
    return glyphs[digit];
}
