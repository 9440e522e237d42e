// SPDX-License-Identifier: Apache-2.0

package rendered_test

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// TestCache renders what changed, and nothing else.
func TestCache(t *testing.T) {
	var cache rendered.Cache
	count := 0
	ask := func(of string, labels map[string]string) {
		t.Helper()
		cluster := &revision.Cluster{Name: "c1", Labels: labels}
		hash, err := cache.Hash(of, cluster, func() (string, error) {
			count++
			return of + labels["region"], nil
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

// BenchmarkHash asks for a hash that is known.
func BenchmarkHash(b *testing.B) {
	var cache rendered.Cache
	cluster := func() *revision.Cluster {
		return &revision.Cluster{Name: "c1", Labels: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}, Annotations: map[string]string{"e": "5"}}
	}
	one := cluster()
	for b.Loop() {
		if _, err := cache.Hash("r1", one, func() (string, error) { return "v1:a", nil }); err != nil {
			b.Fatal(err)
		}
		one = cluster()
	}
}
