// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

func TestBackoffGrowsToItsLongestPauseAndForgets(t *testing.T) {
	var backoff pipeline.Backoff
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		got := backoff.Failed(key, 10*time.Second)
		if want *= time.Second; got > want || got < want*9/10-1 {
			t.Errorf("failure %d: pause %v, want %v less up to a tenth", i+1, got, want)
		}
	}
	for range 100 {
		backoff.Failed(key, time.Hour)
	}
	if got := backoff.Failed(key, time.Hour); got > time.Hour || got < 54*time.Minute {
		t.Errorf("after many failures the pause is %v, want about an hour", got)
	}
	backoff.Succeeded(key)
	if got := backoff.Count(key); got != 0 {
		t.Errorf("%d failures remembered after a success", got)
	}
	if got := backoff.Failed(key, time.Minute); got > time.Second {
		t.Errorf("the first pause after a success is %v, want at most a second", got)
	}
}

// While the watch of a cache is down, the copy in it stays stale for seconds.
func TestConflictsPauseLongerInARow(t *testing.T) {
	var backoff pipeline.Backoff
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	conflict := apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("changed"))
	for i, want := range []int{200, 400, 800, 1600, 3200, 5000, 5000} {
		result, err := backoff.Conflict(key, conflict)
		if err != nil || result.RequeueAfter != time.Duration(want)*time.Millisecond {
			t.Errorf("conflict %d: %v, %v, want %d ms", i+1, result.RequeueAfter, err, want)
		}
	}
	backoff.Succeeded(key)
	if got := backoff.Conflicted(key); got != 200*time.Millisecond {
		t.Errorf("after a success the pause is %v", got)
	}
}
