// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// versions is a reader that has one object, at a version that the test sets; "" for none.
type versions struct {
	client.Reader
	version string
	reads   int
}

func (v *versions) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	v.reads++
	if v.version == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	object.SetResourceVersion(v.version)
	return nil
}

func TestReadAsksTheServerUntilTheCacheHasCaughtUp(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("changed"))
	for name, fail := range map[string]func(*pipeline.Backoff, types.NamespacedName){
		"refused":           func(b *pipeline.Backoff, key types.NamespacedName) { _, _ = b.Conflict(key, conflict) },
		"answer lost":       func(b *pipeline.Backoff, key types.NamespacedName) { _, _ = b.Conflict(key, errors.New("reset")) },
		"stale somewhere":   func(b *pipeline.Backoff, key types.NamespacedName) { b.Conflicted(key) },
		"refused, all well": func(b *pipeline.Backoff, key types.NamespacedName) { b.Conflicted(key); b.Succeeded(key) },
	} {
		t.Run(name, func(t *testing.T) {
			var backoff pipeline.Backoff
			key := types.NamespacedName{Namespace: "a", Name: "b"}
			cache, live := &versions{version: "9"}, &versions{version: "10"}
			read := func(want string, asked int) {
				t.Helper()
				object, err := pipeline.ReadCurrent[corev1.ConfigMap](t.Context(), &backoff, cache, live, key)
				if err != nil || object.ResourceVersion != want || live.reads != asked {
					t.Errorf("version %q after %d questions, %v; want %q after %d", object.ResourceVersion, live.reads, err, want, asked)
				}
			}
			read("9", 0) // nothing is known against the cache
			fail(&backoff, key)
			read("10", 1)
			live.version = "11"
			read("11", 2) // the cache is still behind
			cache.version = "10"
			read("11", 3)
			cache.version = "12"
			read("12", 3)
			cache.version = "9"
			read("9", 3) // it is believed again
		})
	}
}

func TestReadOfWhatIsGone(t *testing.T) {
	var backoff pipeline.Backoff
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	cache, live := &versions{version: "9"}, &versions{}
	backoff.Conflicted(key)
	if _, err := pipeline.ReadCurrent[corev1.ConfigMap](t.Context(), &backoff, cache, live, key); !apierrors.IsNotFound(err) {
		t.Errorf("an object that is gone: %v", err)
	}
	cache.version = ""
	if _, err := pipeline.ReadCurrent[corev1.ConfigMap](t.Context(), &backoff, cache, live, key); !apierrors.IsNotFound(err) || live.reads != 1 {
		t.Errorf("the same again: %v after %d questions", err, live.reads)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		version, than string
		want          bool
	}{{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"", "10", false}, {"9", "", false}, {"a", "b", false}} {
		if got := pipeline.OlderVersion(c.version, c.than); got != c.want {
			t.Errorf("Older(%q, %q) = %v", c.version, c.than, got)
		}
	}
}
