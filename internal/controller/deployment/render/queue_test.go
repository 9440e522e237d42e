// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// task is a conversion of a test.
type task struct {
	takes        time.Duration
	err          error
	begun, ended atomic.Int32
}

func (c *task) run(ctx context.Context) (*jobs.Converted, error) {
	c.begun.Add(1)
	select {
	case <-time.After(c.takes):
		if c.err != nil {
			return nil, c.err
		}
		return &jobs.Converted{Values: 1}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *task) end() { c.ended.Add(1) }

func convertWith(t *testing.T, q *render.Queue, k types.NamespacedName, about string, c *task) error {
	t.Helper()
	converted, err := q.Convert(t.Context(), k, about, c.run, c.end)
	if (converted == nil) == (err == nil) {
		t.Errorf("%v with %v", converted, err)
	}
	return err
}

// TestLongConversionsHoldNoWorker: the reconcile that starts one ends soon, the object is woken, and its next reconcile
// takes the result.
func TestLongConversionsHoldNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int32
		q := render.NewQueue(func(types.NamespacedName) { called.Add(1) })
		c := &task{takes: time.Minute}
		began := time.Now()
		if err := convertWith(t, q, key("a", "1"), "x", c); !errors.Is(err, render.ErrPending) {
			t.Fatal(err)
		}
		if err := convertWith(t, q, key("a", "1"), "x", c); !errors.Is(err, render.ErrPending) {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a worker of the controller was held for %s", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if called.Load() != 1 {
			t.Errorf("woken %d times", called.Load())
		}
		if err := convertWith(t, q, key("a", "1"), "x", c); err != nil {
			t.Error(err)
		}
		if c.begun.Load() != 1 || q.Pending() != 0 || c.ended.Load() != 3 {
			t.Errorf("begun %d times, ended %d times, %d pending", c.begun.Load(), c.ended.Load(), q.Pending())
		}
	})
}

// TestConversionsOutliveTheirReconcile: a reconcile that is cancelled or times out leaves the conversion to the next one,
// without an error of its own context.
func TestConversionsOutliveTheirReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := render.NewQueue(func(types.NamespacedName) {})
		c := &task{takes: 500 * time.Millisecond}
		turn, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("the turn is over"))
		defer cancel()
		if _, err := q.Convert(turn, key("a", "1"), "x", c.run, c.end); !errors.Is(err, render.ErrPending) {
			t.Errorf("got %v, want that it is under way", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := convertWith(t, q, key("a", "1"), "x", c); err != nil || c.begun.Load() != 1 {
			t.Errorf("the next reconcile got %v; begun %d times", err, c.begun.Load())
		}
	})
}

// TestShortConversionsAreWaitedFor: an object is not woken for a result that its reconcile has taken, or a refused
// plan would be converted again and again without a pause.
func TestShortConversionsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int32
		q := render.NewQueue(func(types.NamespacedName) { called.Add(1) })
		for range 3 {
			if err := convertWith(t, q, key("a", "1"), "x", &task{takes: 100 * time.Millisecond}); err != nil || q.Pending() != 0 {
				t.Errorf("%v, %d pending", err, q.Pending())
			}
		}
		failed := errors.New("refused")
		if err := convertWith(t, q, key("a", "1"), "x", &task{err: failed}); !errors.Is(err, failed) {
			t.Error(err)
		}
		synctest.Wait()
		if called.Load() != 0 {
			t.Errorf("woken %d times by what was waited for", called.Load())
		}
	})
}

// TestNoConversionIsLost: a conversion ends just when its reconcile stops waiting: the result is taken, or the
// object is woken.
func TestNoConversionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int32
		q := render.NewQueue(func(types.NamespacedName) { called.Add(1) })
		for range 200 {
			before := called.Load()
			err := convertWith(t, q, key("a", "1"), "x", &task{takes: time.Second}) // as long as it is waited for
			synctest.Wait()
			pending := errors.Is(err, render.ErrPending)
			if woken := called.Load() - before; pending && woken != 1 || !pending && woken != 0 {
				t.Fatalf("%v, and woken %d times", err, woken)
			}
			if pending {
				err = convertWith(t, q, key("a", "1"), "x", &task{})
			}
			if err != nil || q.Pending() != 0 {
				t.Fatalf("%v, %d pending", err, q.Pending())
			}
		}
	})
}

// TestNamespacesWaitForTheirOwn: two of a namespace at a time; other namespaces are not affected.
func TestNamespacesWaitForTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := render.NewQueue(func(types.NamespacedName) {})
		long := &task{takes: time.Hour}
		for _, name := range []string{"1", "2", "3"} {
			if err := convertWith(t, q, key("a", name), "x", long); !errors.Is(err, render.ErrPending) {
				t.Fatal(err)
			}
		}
		if long.begun.Load() != 2 {
			t.Errorf("%d were begun", long.begun.Load())
		}
		if err := convertWith(t, q, key("b", "1"), "x", &task{}); err != nil {
			t.Error(err)
		}
		q.Leave(key("a", "3"))
		for _, name := range []string{"1", "2"} {
			q.End(key("a", name))
		}
		synctest.Wait()
		if q.Pending() != 0 {
			t.Errorf("%d pending", q.Pending())
		}
	})
}

// TestChangedInput: the result for an earlier input is dropped, except the error of a limit.
func TestChangedInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int32
		q := render.NewQueue(func(types.NamespacedName) { called.Add(1) })
		limit := &worker.LimitError{Limit: worker.LimitCPU, Budget: "20s"}
		for about, want := range map[error]error{nil: render.ErrPending, limit: limit, errors.New("refused"): render.ErrPending} {
			old, changed := &task{takes: time.Minute, err: about}, &task{}
			if about != nil {
				old.err = about
			}
			if err := convertWith(t, q, key("a", "1"), "old", old); !errors.Is(err, render.ErrPending) {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			before := called.Load()
			if err := convertWith(t, q, key("a", "1"), "new", changed); !errors.Is(err, want) {
				t.Errorf("after %v: %v", about, err)
			}
			if errors.Is(want, render.ErrPending) && called.Load() != before+1 {
				t.Error("nothing begins with the new input")
			}
			if err := convertWith(t, q, key("a", "1"), "new", changed); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestEndOfAConversion: deleting the deployment cancels its conversion.
func TestEndOfAConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := render.NewQueue(func(types.NamespacedName) {})
		c := &task{takes: 24 * time.Hour}
		_ = convertWith(t, q, key("a", "1"), "x", c)
		q.End(key("a", "1"))
		q.End(key("a", "2")) // nothing runs
		synctest.Wait()
		if q.Pending() != 0 || c.ended.Load() != 1 {
			t.Errorf("%d pending, ended %d times", q.Pending(), c.ended.Load())
		}
	})
}

// TestLimitsAreFinal: limits are final at once, except CPU time, which depends on the machine's load; other input is
// tried.
func TestLimitsAreFinal(t *testing.T) {
	var known render.Excesses
	cpu, memory := &worker.LimitError{Limit: worker.LimitCPU}, &worker.LimitError{Limit: worker.LimitMemory}
	if known.Note(key("a", "1"), "x", cpu) || known.Final(key("a", "1"), "x") != nil {
		t.Error("CPU time is not tried again")
	}
	if !known.Note(key("a", "1"), "x", cpu) || known.Final(key("a", "1"), "x") != cpu {
		t.Error("CPU time is tried for ever")
	}
	if known.Final(key("a", "1"), "y") != nil || known.Final(key("a", "2"), "x") != nil {
		t.Error("other input is not tried")
	}
	if known.Note(key("a", "1"), "y", cpu) {
		t.Error("other input is not tried again")
	}
	if !known.Note(key("b", "1"), "x", memory) || known.Final(key("b", "1"), "x") != memory {
		t.Error("memory is tried again")
	}
	known.Forget(key("b", "1"))
	if known.Final(key("b", "1"), "x") != nil {
		t.Error("a deleted deployment is remembered")
	}
}

// TestBriefConversionsAreQueuedInPlace: a reconcile waits for its turn while the conversions of its namespace are brief, so that
// many deployments that are created together need one reconcile each; and it ends at once while one takes long.
func TestBriefConversionsAreQueuedInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := render.NewQueue(func(types.NamespacedName) {})
		var converted, left atomic.Int32
		for _, name := range []string{"1", "2", "3", "4"} {
			go func() {
				if convertWith(t, q, key("a", name), "x", &task{takes: 50 * time.Millisecond}) == nil {
					converted.Add(1)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if converted.Load() != 4 {
			t.Errorf("%d of 4 were converted at once", converted.Load())
		}
		for _, name := range []string{"1", "2"} {
			go convertWith(t, q, key("a", name), "x", &task{takes: time.Minute})
		}
		time.Sleep(500 * time.Millisecond)
		for _, name := range []string{"3", "4", "5"} {
			began := time.Now()
			if err := convertWith(t, q, key("a", name), "x", &task{}); errors.Is(err, render.ErrPending) && time.Since(began) == 0 {
				left.Add(1)
			}
			q.Leave(key("a", name))
		}
		if left.Load() != 3 {
			t.Errorf("%d of 3 ended at once", left.Load())
		}
		for _, name := range []string{"1", "2"} {
			q.End(key("a", name))
		}
		synctest.Wait()
	})
}

// TestTurnWithinPatience: a turn that comes too late is not lost, and one that comes in time needs no other reconcile.
func TestTurnWithinPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := render.NewQueue(func(types.NamespacedName) {})
		for _, name := range []string{"1", "2"} { // they begin together, and take longer than a reconcile waits for its turn
			go convertWith(t, q, key("a", name), "x", &task{takes: 900 * time.Millisecond})
		}
		synctest.Wait()
		began := time.Now()
		err := convertWith(t, q, key("a", "3"), "x", &task{})
		if took := time.Since(began); !errors.Is(err, render.ErrPending) || took != 200*time.Millisecond {
			t.Errorf("%v after %s", err, took)
		}
		time.Sleep(time.Second) // the turn is promised meanwhile
		if err := convertWith(t, q, key("a", "3"), "x", &task{}); err != nil {
			t.Error(err)
		}
		if waiting := q.Turns.Waiting(); waiting != 0 || q.Pending() != 0 {
			t.Errorf("%d wait, %d pending", waiting, q.Pending())
		}
	})
}
