// What one drafter of llama.cpp that is kept from prompt to prompt drafts, as llama-server keeps one. No model: the
// answers are known, and a draft counts as far as it agrees with them. Build and run: see the pages beside this file.
#include "common.h"
#include "speculative.h"

#include <cstdio>
#include <random>

static std::mt19937 dice(1);

static llama_tokens random_tokens(int n) {
    llama_tokens tokens(n);
    for (auto & token : tokens) token = (llama_token) (dice() % 50000);
    return tokens;
}

// Tokens a round of an answer that the target is known to give, and how many were drafted and accepted for it.
static void answer(common_speculative * spec, const char * name, const llama_tokens & prompt, const llama_tokens & known) {
    llama_tokens text = prompt;
    common_speculative_begin(spec, 0, text);
    size_t at = 0, rounds = 0, drafted = 0, accepted = 0;
    while (at + 1 < known.size()) {
        llama_tokens draft;
        auto & params = common_speculative_get_draft_params(spec, 0);
        params.drafting = true;
        params.n_max = (int) (known.size() - at - 2);
        params.pos0 = (llama_pos) text.size();
        params.id_last = known[at];
        params.prompt = &text;
        params.result = &draft;
        if (params.n_max > 0) common_speculative_draft(spec);
        size_t right = 0;
        while (right < draft.size() && draft[right] == known[at + 1 + right]) ++right;
        if (!draft.empty()) common_speculative_accept(spec, 0, (uint16_t) right);
        text.insert(text.end(), known.begin() + at, known.begin() + at + right + 1);
        at += right + 1;
        ++rounds;
        drafted += draft.size();
        accepted += right;
    }
    printf("  %-24s %5.2f tokens a round, %zu drafted, %zu accepted\n", name, (double) (known.size() - 1) / rounds,
           drafted, accepted);
}

static common_speculative * open(const char * type, int n, int m) {
    static common_params_speculative params;
    params.types = common_speculative_types_from_names({ type });
    for (auto * map : { &params.ngram_map_k, &params.ngram_map_k4v }) {
        map->size_n = (uint16_t) n;
        map->size_m = (uint16_t) m;
    }
    return common_speculative_init(params, 1);
}

int main() {
    const auto prompt = random_tokens(30), text = random_tokens(400), foreign = random_tokens(900);
    printf("ngram-mod at its defaults, an answer of 400 random tokens with nothing to copy\n");
    auto * mod = open("ngram-mod", 0, 0);
    answer(mod, "first time", prompt, text);
    answer(mod, "second time", prompt, text);
    common_speculative_free(mod);
    mod = open("ngram-mod", 0, 0);
    answer(mod, "first time, new object", prompt, text);
    common_speculative_free(mod);

    const auto source = random_tokens(200);
    const llama_tokens copy(source.begin() + 20, source.begin() + 180);
    for (const char * type : { "ngram-map-k", "ngram-map-k4v" }) {
        printf("%s, n = 3, m = 8, an answer that copies 160 tokens of its prompt of 200\n", type);
        auto * map = open(type, 3, 8);
        answer(map, "new object", source, copy);
        common_speculative_free(map);
        map = open(type, 3, 8);
        answer(map, "a foreign prompt of 900", foreign, random_tokens(20));
        answer(map, "the prompt after it", source, copy);
        answer(map, "the prompt again", source, copy);
        common_speculative_free(map);
    }
    return 0;
}
