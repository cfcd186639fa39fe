package credential_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// A day of a machine, many times: clients come and go, some repeat their requests, the other side is down at times,
// the user is away at others, sessions end, the disk is full, files are damaged, the clock jumps. The invariants:
// nothing is served beyond its expiry, no refresh token is used twice (the authority sees to it), and an interactive client
// is served while everything works.
func TestSimulation(t *testing.T) {
	days := uint64(80)
	if testing.Short() {
		days = 10
	}
	for seed := range days {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulate(t, rand.New(rand.NewPCG(seed, 541))) })
	}
}

func simulate(t *testing.T, random *rand.Rand) {
	w := newWorld(t)
	w.authority.lifetime = time.Duration(1+random.IntN(3600)) * time.Second
	issued := map[string]time.Time{}
	var free func()
	w.authority.change = func(c *credential.Credential, state *json.RawMessage, err *error) {
		if *err != nil {
			return
		}
		issued[c.Token.Reveal()] = c.Expires
		if free == nil && random.IntN(6) == 0 {
			// The reserved space goes.
			_ = os.Remove(w.file() + ".tmp")
			free = w.block(".tmp")
		}
		if random.IntN(4) == 0 {
			// The source writes the state itself, and may fail after it.
			_ = w.authority.requests[len(w.authority.requests)-1].Keep(*state)
			if random.IntN(2) == 0 {
				*c, *state, *err = credential.Credential{}, nil, errDown
			}
		}
	}
	for range 60 {
		switch random.IntN(12) {
		case 0:
			w.authority.down = errDown
		case 1, 2:
			w.authority.down = nil
		case 3:
			w.authority.away = !w.authority.away
		case 4:
			w.authority.end()
		case 5:
			if free == nil {
				free = w.block(".tmp")
			}
		case 6, 7:
			if free != nil {
				free()
				free = nil
			}
		case 8:
			damage(w, random)
		case 9:
			w.pass(-time.Duration(random.IntN(7200)) * time.Second)
		default:
			w.pass(time.Duration(random.IntN(1200)) * time.Second)
		}
		ask := silently()
		if random.IntN(2) == 0 {
			ask = interactively()
		}
		c, err := w.serve(1+random.IntN(4), ask)
		if err == nil {
			if end, known := issued[c.Token.Reveal()]; !known || c.Expires.After(end) || !w.clock.Before(c.Expires) {
				t.Fatalf("served %s, which ends at %s, as if it ended at %s, at %s", c.Token.Reveal(), end, c.Expires, w.clock)
			}
		}
	}
	if free != nil {
		free()
	}
	w.authority.down, w.authority.away, w.authority.change = nil, false, nil
	// The first attempt may find that the session has ended.
	for range 2 {
		_, err := w.provider(client(99)).Renew(context.Background(), w.authority, interactively())
		if err == nil {
			return
		}
		if !errors.Is(err, credential.ErrRefused) {
			t.Fatal(err)
		}
	}
	t.Error("not served though everything works")
}
