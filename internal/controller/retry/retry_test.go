// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/retry"
)

func TestBackoffGrowsToItsLongestPauseAndForgets(t *testing.T) {
	var backoff retry.Backoff
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
