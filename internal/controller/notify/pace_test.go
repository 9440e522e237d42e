// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/notify"
)

// allowed counts the allowed events of some objects within a time, tried each second.
func allowed(pace *notify.Pace, namespace string, objects int, from time.Time, during time.Duration) int {
	count := 0
	for at := time.Duration(0); at < during; at += time.Second {
		for i := range objects {
			if pace.Allow(types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}, from.Add(at)) {
				count++
			}
		}
	}
	return count
}

func TestPace(t *testing.T) {
	var pace notify.Pace
	start := time.Now()
	if got := allowed(&pace, "one", 1, start, time.Hour); got < 60 || got > 70 {
		t.Errorf("an object that fails in another way each second has %d events an hour, want about 70", got)
	}
	if got := allowed(&pace, "many", 5000, start, time.Second); got != 1000 {
		t.Errorf("5000 objects of a namespace at once have %d events, want 1000", got)
	}
	if got := allowed(&pace, "many", 5000, start.Add(time.Second), time.Minute); got > 61 {
		t.Errorf("and then %d times in a minute, want one a second", got)
	}
	if got := allowed(&pace, "others", 20, start, time.Second); got != 20 {
		t.Errorf("another namespace has %d events, want 20", got)
	}
	if got := allowed(&pace, "many", 10, start.Add(2*time.Hour), time.Second); got != 10 {
		t.Errorf("later the namespace has %d events, want 10", got)
	}
}

// Objects that have been quiet for long are not remembered.
func TestPaceForgets(t *testing.T) {
	var pace notify.Pace
	start := time.Now()
	for i := range 20_000 {
		pace.Allow(types.NamespacedName{Namespace: fmt.Sprint(i / 100), Name: fmt.Sprint(i)}, start.Add(time.Duration(i)*time.Second))
	}
	if got := pace.Len(); got > 5000 {
		t.Errorf("%d objects are remembered", got)
	}
}
