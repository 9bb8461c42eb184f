// llama.cpp's own drafters (its common/speculative.h) behind a C border: one drafter for one answer at a time.
//
// No type of llama.cpp crosses the border, so nobody on the other side needs a layout. Every function answers 0 or more,
// or -1 for a C++ exception, or -2 for a call that llama.cpp would abort the process on; drafter_error() says why. It
// knows nothing about models: contexts are made and freed by the caller.
#include "build-info.h"
#include "common.h"
#include "log.h"
#include "speculative.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#define BORDER extern "C" __attribute__((visibility("default")))

// Another count is another llama.cpp, whose parameters below may mean something else.
static_assert(COMMON_SPECULATIVE_TYPE_COUNT == 11, "llama.cpp has other drafters than this file was written for");

namespace {

thread_local std::string last_error;

struct Drafter {
    common_params_speculative params;  // llama.cpp keeps no reference, but takes one that is not const
    common_speculative * spec = nullptr;
    bool reads_target = false;
    common_batch batch;                // what the target decoded, in llama.cpp's own type
    llama_tokens text;                 // what the target holds: the prompt and all confirmed tokens but the newest
    llama_tokens draft;
    size_t begun = 0;                  // length of the text at begin()
    ~Drafter() { common_speculative_free(spec); }
};

template <typename Body> int guarded(Body && body) {
    try {
        return body();
    } catch (const std::exception & error) {
        last_error = error.what();
    } catch (...) {
        last_error = "an exception without words";
    }
    return -1;
}

int refused(const std::string & why) {
    last_error = why;
    return -2;
}

std::vector<std::string> split(const std::string & names) {
    std::vector<std::string> found(1);
    for (const char letter : names) {
        if (letter == ',') found.emplace_back();
        else found.back() += letter;
    }
    return found;
}

void set_ngrams(common_params_speculative & params, int n, int m, int hits, int n_min) {
    for (auto * map : { &params.ngram_simple, &params.ngram_map_k, &params.ngram_map_k4v }) {
        if (n > 0) map->size_n = (uint16_t) std::min(n, 1024);
        if (m > 0) map->size_m = (uint16_t) std::min(m, 1024);
        if (hits > 0) map->min_hits = (uint16_t) std::min(hits, 1024);
    }
    if (n > 0) params.ngram_mod.n_match = n;
    if (m > 0) params.ngram_mod.n_max = m;
    if (n_min >= 0) params.ngram_mod.n_min = n_min;
}

}  // namespace

BORDER const char * drafter_error() { return last_error.c_str(); }
BORDER const char * drafter_commit() { return llama_commit(); }
BORDER const char * drafter_types() { return common_speculative_all_types_str(); }
BORDER void drafter_verbosity(int level) { common_log_set_verbosity_thold(level); }

// `types`: names joined by commas. n, m, hits: n-gram, draft and hits of the n-gram types, 0 for llama.cpp's own; n_min:
// the shortest draft of ngram-mod, -1 for its own. n_draft, p_min: of heads and draft models. Returns NULL on failure.
BORDER void * drafter_open(const char * types, int n, int m, int hits, int n_min, int n_draft, float p_min,
                           void * target, void * draft) {
    Drafter * self = nullptr;
    const int code = guarded([&] {
        self = new Drafter();
        auto & params = self->params;
        params.types = common_speculative_types_from_names(split(types));
        set_ngrams(params, n, m, hits, n_min);
        params.draft.n_max = n_draft;
        params.draft.p_min = p_min;
        params.draft.ctx_tgt = (llama_context *) target;
        params.draft.ctx_dft = (llama_context *) draft;
        self->spec = common_speculative_init(params, 1);
        if (!self->spec) return refused("llama.cpp finds nothing to draft with: the type needs a draft context");
        self->reads_target = draft != nullptr;
        if (self->reads_target) self->batch = common_batch((llama_context *) target);
        return 0;
    });
    if (code == 0) return self;
    delete self;
    return nullptr;
}

BORDER void drafter_close(void * handle) {
    guarded([&] { delete (Drafter *) handle; return 0; });
}

// Most tokens of a draft, of the types that were really made.
BORDER int drafter_most(void * handle) {
    return guarded([&] { return (int) common_speculative_n_max(((Drafter *) handle)->spec); });
}

// An answer starts: `tokens` are what the target holds, the prompt without the newest token.
BORDER int drafter_begin(void * handle, const int32_t * tokens, int n) {
    auto & self = *(Drafter *) handle;
    return guarded([&] {
        self.text.assign(tokens, tokens + n);
        self.draft.clear();
        self.begun = self.text.size();
        common_speculative_begin(self.spec, 0, self.text);
        return 0;
    });
}

// The target decoded these rows of the answer from position `start` on, in one llama_decode.
BORDER int drafter_process(void * handle, const int32_t * tokens, int n, int start) {
    auto & self = *(Drafter *) handle;
    if (!self.reads_target) return 0;  // of the n-gram types, process() does nothing
    return guarded([&] {
        self.batch.clear();
        for (int row = 0; row < n; ++row) self.batch.add(tokens[row], start + row, 0, true);
        return common_speculative_process(self.spec, self.batch) ? 0 : refused("llama.cpp's drafter failed to decode");
    });
}

// At most `limit` guesses behind `last` into `out`. Returns how many.
BORDER int drafter_draft(void * handle, int32_t last, int limit, int32_t * out) {
    auto & self = *(Drafter *) handle;
    if (self.text.size() < self.begun) return refused("the text is shorter than at begin(), on which llama.cpp aborts");
    return guarded([&] {
        self.draft.clear();
        if (limit < 1) return 0;
        auto & wanted = common_speculative_get_draft_params(self.spec, 0);
        wanted.drafting = true;
        wanted.n_max = limit;
        wanted.pos0 = (llama_pos) self.text.size();
        wanted.id_last = last;
        wanted.prompt = &self.text;
        wanted.result = &self.draft;
        common_speculative_draft(self.spec);
        const int n = std::min<int>(limit, (int) self.draft.size());
        if (n) std::memcpy(out, self.draft.data(), n * sizeof(int32_t));
        return n;
    });
}

// `accepted` of the draft were right; `confirmed` is what the target holds in addition to the text.
BORDER int drafter_accept(void * handle, int accepted, const int32_t * confirmed, int n) {
    auto & self = *(Drafter *) handle;
    if (accepted < 0 || accepted > (int) self.draft.size()) return refused("more was accepted than drafted");
    return guarded([&] {
        self.text.insert(self.text.end(), confirmed, confirmed + n);
        // As llama-server: never without a draft, or it would count against the type that drafted last.
        if (!self.draft.empty()) common_speculative_accept(self.spec, 0, (uint16_t) accepted);
        self.draft.clear();
        return 0;
    });
}

// llama.cpp's own counters, as it prints them, into a file.
BORDER int drafter_statistics(void * handle, const char * path) {
    return guarded([&] {
        const int before = common_log_get_verbosity_thold();
        common_log_set_verbosity_thold(100);
        common_log_set_file(common_log_main(), path);
        common_speculative_print_stats(((Drafter *) handle)->spec);
        common_log_flush(common_log_main());
        common_log_set_file(common_log_main(), nullptr);
        common_log_set_verbosity_thold(before);
        return 0;
    });
}
