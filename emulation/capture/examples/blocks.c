/*
 * A guest to capture: the memory behaviour of executing blocks of a chain, without a chain.
 *
 * Each block inserts accounts into a trie of sixteen-way nodes, runs a small stack machine over
 * them, hashes the nodes that changed, and sorts the slots that were touched. The instructions are
 * long straight-line code and tight loops; the data is small nodes all over a heap that grows with
 * every block.
 *
 * Usage: blocks [BLOCKS]   (default 10). It prints a digest, which is the same everywhere.
 *
 *     riscv64-linux-gnu-gcc -O2 -static -o blocks emulation/capture/examples/blocks.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 6,      /* digits of a key, four bits each */
    INSERTS = 300,  /* accounts of a block */
    RUNS = 40,      /* programs of a block */
    SLOTS = 400,    /* slots that are sorted */
    LANES = 17,     /* words that a node is hashed from */
    STACK = 64,
    CELLS = 256,
};

struct node {
    struct node *child[16];
    uint64_t hash;
    uint64_t value;
    uint8_t changed;
};

static uint64_t seed = 0x243F6A8885A308D3u;

/* A fixed sequence: every run makes the same accesses. */
static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

/* One step: a lane of the old state into a lane of the new one, as sponge functions do it. */
#define LANE(t, s, to, a, b, c, r) \
        (t)[to] = (s)[a] ^ (~(s)[b] & (s)[c]) ^ rotate((s)[to], r)

/* A round over all lanes, written out: long code, and more words than there are registers. */
#define HALF(t, s, k) do { \
        LANE(t, s, 0, 1, 7, 13, 1); LANE(t, s, 1, 2, 8, 14, 3); \
        LANE(t, s, 2, 3, 9, 15, 6); LANE(t, s, 3, 4, 10, 16, 10); \
        LANE(t, s, 4, 5, 11, 0, 15); LANE(t, s, 5, 6, 12, 1, 21); \
        LANE(t, s, 6, 7, 13, 2, 28); LANE(t, s, 7, 8, 14, 3, 36); \
        LANE(t, s, 8, 9, 15, 4, 45); LANE(t, s, 9, 10, 16, 5, 55); \
        LANE(t, s, 10, 11, 0, 6, 2); LANE(t, s, 11, 12, 1, 7, 14); \
        LANE(t, s, 12, 13, 2, 8, 27); LANE(t, s, 13, 14, 3, 9, 41); \
        LANE(t, s, 14, 15, 4, 10, 56); LANE(t, s, 15, 16, 5, 11, 8); \
        LANE(t, s, 16, 0, 6, 12, 25); \
        (t)[0] += (uint64_t)(k) * 0x9E3779B97F4A7C15u; \
    } while (0)

#define ROUNDS(k) do { HALF(t, s, k); HALF(s, t, k + 1); } while (0)

/* Twelve rounds without a loop. */
static uint64_t __attribute__((noinline)) mix(uint64_t *s, uint64_t *t)
{
    ROUNDS(1); ROUNDS(3); ROUNDS(5); ROUNDS(7); ROUNDS(9); ROUNDS(11);
    return s[0] ^ s[16];
}

static struct node *make(void)
{
    struct node *node = calloc(1, sizeof *node);

    if (!node) {
        perror("calloc");
        exit(1);
    }
    return node;
}

/* Puts a value under a key and marks the way to it. */
static struct node *insert(struct node *root, uint64_t key, uint64_t value)
{
    struct node *at = root;

    for (int digit = 0; digit < DEPTH; digit++) {
        struct node **child = &at->child[key >> 4 * digit & 15];

        at->changed = 1;
        if (!*child)
            *child = make();
        at = *child;
    }
    at->changed = 1;
    at->value += value;
    return at;
}

/* Hashes what changed, leaves first. */
static uint64_t rehash(struct node *node)
{
    uint64_t lanes[LANES], others[LANES];

    if (!node)
        return 0;
    if (!node->changed)
        return node->hash;
    for (int index = 0; index < 16; index++)
        lanes[index] = rehash(node->child[index]);
    lanes[16] = node->value;
    node->hash = mix(lanes, others);
    node->changed = 0;
    return node->hash;
}

enum op { PUSH, ADD, MUL, XOR, SWAP, LOAD, STORE, DUP, LESS, JUMP, OPS };

/* A small machine: a stack, cells, and bytecode that was made for this run. */
static uint64_t run(const uint8_t *code, unsigned length, uint64_t *cells, uint64_t input)
{
    uint64_t stack[STACK] = { input, input ^ 1, 3, 4 };
    unsigned top = 4, fuel = 4 * length;

    for (unsigned pc = 0; pc < length && fuel; pc++, fuel--) {
        uint64_t *a = &stack[(top - 1) % STACK], *b = &stack[(top - 2) % STACK], old;

        switch (code[pc] % OPS) {
        case PUSH: stack[top++ % STACK] = code[(pc + 1) % length]; break;
        case ADD: *b += *a; top--; break;
        case MUL: *b *= *a | 1; top--; break;
        case XOR: *b ^= *a; top--; break;
        case SWAP: old = *a; *a = *b; *b = old; break;
        case LOAD: *a = cells[*a % CELLS]; break;
        case STORE: cells[*a % CELLS] = *b; top--; break;
        case DUP: stack[top++ % STACK] = *a; break;
        case LESS: *b = *b < *a; top--; break;
        case JUMP: if (*a & 1) pc = (pc + *b % 8) % length; break;
        }
        if (top < 4)
            top += 4;
    }
    return stack[(top - 1) % STACK];
}

static int ascending(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static uint64_t block(struct node *root)
{
    static uint64_t slots[SLOTS], cells[CELLS];
    uint8_t code[192];
    uint64_t digest = 0;

    for (int index = 0; index < INSERTS; index++) {
        uint64_t key = next() >> 20;

        slots[index % SLOTS] = insert(root, key, next())->value;
    }
    for (int index = 0; index < RUNS; index++) {
        for (unsigned at = 0; at < sizeof code; at++)
            code[at] = next() >> 56;
        slots[(INSERTS + index) % SLOTS] = run(code, sizeof code, cells, next());
    }
    for (int index = INSERTS + RUNS; index < SLOTS; index++)
        slots[index] = cells[index % CELLS] ^ next();
    qsort(slots, SLOTS, sizeof slots[0], ascending);
    for (int index = 0; index < SLOTS; index++)
        digest = rotate(digest, 1) ^ slots[index];
    return digest ^ rehash(root);
}

int main(int argc, char **argv)
{
    long blocks = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    struct node *root = make();
    uint64_t digest = 0;

    for (long index = 0; index < blocks; index++)
        digest = rotate(digest, 3) ^ block(root);
    printf("%016llx\n", (unsigned long long)digest);
    return 0;
}
