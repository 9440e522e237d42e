// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// woken records which objects were woken.
type woken []types.NamespacedName

func (w *woken) wake(key types.NamespacedName) { *w = append(*w, key) }

// M9, T21: the memory of all bundles together is bounded, small ones never wait, and large ones of a namespace leave
// half of the room to others.
func TestM9RoomIsShared(t *testing.T) {
	var called woken
	room := render.NewRoom(1000, 20, called.wake)
	take := func(want bool, namespace, name string, values int64) {
		t.Helper()
		if got := room.Take(key(namespace, name), values); got != want {
			t.Errorf("%s/%s with %d values: %t", namespace, name, values, got)
		}
	}
	take(true, "a", "1", 600)
	take(false, "a", "2", 100) // its namespace has more than its share
	take(true, "b", "1", 300)  // a job that waits for its own namespace delays no other namespace
	take(false, "c", "1", 500)
	take(true, "a", "3", 20)
	take(true, "a", "1", 600) // it has that already
	if len(called) != 0 {
		t.Errorf("%v were woken", called)
	}
	room.Leave(key("a", "1"))
	if !slices.Equal(called, woken{key("a", "2"), key("c", "1")}) {
		t.Errorf("%v were woken", called)
	}
	take(true, "c", "1", 500)
	if room.Held() != 900 {
		t.Errorf("%d values are held", room.Held())
	}
	for _, k := range []types.NamespacedName{key("a", "2"), key("b", "1"), key("c", "1")} {
		room.Leave(k)
	}
	take(true, "d", "1", 5000) // beyond the whole room: it gets its turn alone
	take(false, "e", "1", 30)
	room.Leave(key("d", "1"))
	if room.Held() != 30 {
		t.Errorf("%d values are held", room.Held())
	}
}

// TestAllGetRoom: in any order, all are served in the end, no room is lost, and the bound holds.
func TestAllGetRoom(t *testing.T) {
	const total = 1000
	var called woken
	room := render.NewRoom(total, 20, called.wake)
	random := rand.New(rand.NewPCG(1, 2))
	open := map[types.NamespacedName]int64{}
	for i := range 300 {
		open[key(strconv.Itoa(i%7), strconv.Itoa(i))] = int64(random.IntN(1200))
	}
	holding := map[types.NamespacedName]int64{}
	try := func(k types.NamespacedName) {
		if values, waits := open[k]; waits && room.Take(k, values) {
			delete(open, k)
			if values > 20 {
				holding[k] = min(values, total)
			}
		}
	}
	for k := range open {
		try(k)
	}
	for len(open) > 0 {
		sum := int64(0)
		for _, values := range holding {
			sum += values
		}
		if sum > total || len(holding) == 0 {
			t.Fatalf("%d values are held by %d; %d wait", sum, len(holding), len(open))
		}
		for k := range holding {
			delete(holding, k)
			room.Leave(k)
			break
		}
		for _, k := range called {
			try(k)
		}
		called = nil
	}
	for k := range holding {
		room.Leave(k)
	}
	if room.Held() != 0 {
		t.Errorf("%d values are still held", room.Held())
	}
}
