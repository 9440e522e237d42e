// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"errors"
	"testing"

	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// TestCache renders what changed, and nothing else.
func TestCache(t *testing.T) {
	var cache Cache
	count := 0
	ask := func(of string, labels map[string]string) {
		t.Helper()
		cluster := &revision.Cluster{Name: "c1", Labels: labels}
		hash, err := cache.hash(of, cluster, noInputs, func() (spec, error) {
			count++
			return spec{hash: of + labels["region"]}, nil
		})
		if err != nil || hash != of+labels["region"] {
			t.Errorf("got %s, %v", hash, err)
		}
	}
	wants := func(what string, rendered int) {
		t.Helper()
		if count != rendered {
			t.Errorf("%s: %d were rendered, want %d", what, count, rendered)
		}
		count = 0
	}
	eu, us := map[string]string{"region": "eu"}, map[string]string{"region": "us"}
	cache.Begin(1)
	ask("r1", eu)
	ask("r1", eu)
	ask("r2", eu)
	wants("two revisions", 2)
	cache.Begin(1)
	ask("r1", map[string]string{"region": "eu"})
	wants("the next decision", 0)
	ask("r1", us)
	wants("another label", 1)
	cache.Begin(1)
	cache.Begin(1)
	ask("r2", eu)
	wants("not asked for in two decisions", 1)
	cache.Begin(2)
	ask("r2", eu)
	wants("another generation", 1)

	cache.Keep("c1", "7", "v1:a")
	if !cache.Intact("c1", "7", "v1:a") || cache.Intact("c1", "8", "v1:a") || cache.Intact("c1", "7", "v1:b") || cache.Intact("c2", "7", "v1:a") {
		t.Error("what is intact is one version with one hash")
	}
	if cache.Forget(func(string) bool { return false }); cache.Intact("c1", "7", "v1:a") {
		t.Error("it was kept")
	}
}

func noInputs([]revision.FrozenInput) ([]string, error) { return nil, errors.New("not asked for") }

// TestCacheOfInputs renders again what has another digest of an input, and remembers no input that is missing.
func TestCacheOfInputs(t *testing.T) {
	var cache Cache
	digest, missing := "one", error(nil)
	digests := func(wanted []revision.FrozenInput) ([]string, error) {
		if len(wanted) != 1 || wanted[0].Name != "values-c1" {
			t.Errorf("asked for %v", wanted)
		}
		return []string{digest}, missing
	}
	count := 0
	ask := func() string {
		t.Helper()
		hash, err := cache.hash("r1", &revision.Cluster{Name: "c1"}, digests, func() (spec, error) {
			count++
			return spec{hash: "of " + digest, inputs: []revision.FrozenInput{{Kind: "ConfigMap", Name: "values-c1"}}, digests: []string{digest}}, missing
		})
		if (err != nil) != (missing != nil) {
			t.Errorf("got %v, the input: %v", err, missing)
		}
		return hash
	}
	missing = errors.New("it does not exist")
	ask()
	missing = nil
	if got := ask(); got != "of one" || count != 2 {
		t.Errorf("%s, %d rendered", got, count)
	}
	if got := ask(); got != "of one" || count != 2 {
		t.Errorf("unchanged: %s, %d rendered", got, count)
	}
	digest = "two"
	if got := ask(); got != "of two" || count != 3 {
		t.Errorf("changed: %s, %d rendered", got, count)
	}
	missing = errors.New("it was deleted")
	if got := ask(); got != "" || count != 3 {
		t.Errorf("deleted: %s, %d rendered", got, count)
	}
}

// BenchmarkHash asks for a hash that is known.
func BenchmarkHash(b *testing.B) {
	var cache Cache
	cluster := func() *revision.Cluster {
		return &revision.Cluster{Name: "c1", Labels: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}, Annotations: map[string]string{"e": "5"}}
	}
	one := cluster()
	for b.Loop() {
		if _, err := cache.hash("r1", one, noInputs, func() (spec, error) { return spec{hash: "v1:a"}, nil }); err != nil {
			b.Fatal(err)
		}
		one = cluster()
	}
}
