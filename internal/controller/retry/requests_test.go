// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/retry"
)

// Of requests that come every 10 ms the first is answered at once, and then one a second.
func TestT16RequestsAreSpaced(t *testing.T) {
	requests := retry.NewRequests()
	key, now, answered := types.NamespacedName{Namespace: "shop", Name: "web"}, time.Unix(1_000_000, 0), 0
	for i := range 500 {
		if pause := requests.Pause(key, fmt.Sprint(i), now); pause == 0 {
			answered++
		} else if pause > time.Second {
			t.Fatalf("a pause of %v", pause)
		}
		if i == 0 && answered != 1 {
			t.Error("the first request waits")
		}
		now = now.Add(10 * time.Millisecond)
	}
	if answered != 5 {
		t.Errorf("%d of 500 requests in five seconds were answered, want 5", answered)
	}
	if requests.Pause(types.NamespacedName{Namespace: "shop", Name: "other"}, "1", now) != 0 {
		t.Error("another object waits")
	}
	now = now.Add(time.Second)
	for range 2 {
		if requests.Pause(key, "last", now) != 0 || requests.Pause(key, "", now) != 0 {
			t.Error("what was answered, or asked for nothing, waits")
		}
	}
	requests.Drop(key)
	if requests.Pause(key, "again", now) != 0 {
		t.Error("an object that was forgotten waits")
	}
}

// Of edits that come every 100 ms a few are answered at once, and then one a second.
func TestT16EditsAreSpaced(t *testing.T) {
	edits := retry.NewEdits()
	key, now, answered := types.NamespacedName{Namespace: "shop", Name: "web"}, time.Unix(1_000_000, 0), 0
	for i := range 100 {
		if edits.Pause(key, fmt.Sprint(i), now) == 0 {
			answered++
		}
		if i == 4 && answered != 5 {
			t.Errorf("%d of the first five edits were answered", answered)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if answered < 13 || answered > 15 {
		t.Errorf("%d of 100 edits in ten seconds were answered, want 5 and one a second", answered)
	}
	pause := edits.Pause(key, "last", now)
	if edits.Pause(key, "last", now.Add(pause)) != 0 {
		t.Errorf("an edit has to wait longer than the pause of %s that it was told", pause)
	}
}
