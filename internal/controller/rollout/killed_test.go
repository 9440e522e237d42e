// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

var errKilled = errors.New("killed by a test")

// mortal is a client of a process that ends at one of its writes: just before it, or just after it without having seen the answer.
// All later requests of the process fail.
type mortal struct {
	client.Client
	writes, end int
	after       bool
	dead        bool
}

func (m *mortal) write(do func() error) error {
	if m.dead {
		return errKilled
	}
	m.writes++
	if m.writes != m.end {
		return do()
	}
	m.dead = true
	if m.after {
		_ = do()
	}
	return errKilled
}

func (m *mortal) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if m.dead {
		return errKilled
	}
	return m.Client.Get(ctx, key, object, o...)
}

func (m *mortal) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if m.dead {
		return errKilled
	}
	return m.Client.List(ctx, list, o...)
}

func (m *mortal) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	return m.write(func() error { return m.Client.Create(ctx, object, o...) })
}

func (m *mortal) Patch(ctx context.Context, object client.Object, patch client.Patch, o ...client.PatchOption) error {
	return m.write(func() error { return m.Client.Patch(ctx, object, patch, o...) })
}

func (m *mortal) Apply(ctx context.Context, object runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	return m.write(func() error { return m.Client.Apply(ctx, object, o...) })
}

func (m *mortal) Status() client.SubResourceWriter { return mortalStatus{m.Client.Status(), m} }

type mortalStatus struct {
	client.SubResourceWriter
	of *mortal
}

func (s mortalStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
	return s.of.write(func() error { return s.SubResourceWriter.Patch(ctx, object, patch, o...) })
}

// TestR24Killed ends the process at each of its writes, and lets another one go on. No cluster is started twice, and never more at
// once than the waves allow.
func TestR24Killed(t *testing.T) {
	every := 12 // the common suite has a sample
	if os.Getenv("SATCHEL_FULL") != "" {
		every = 1
	}
	for end := 1; end <= 36; end += every {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(end, after), func(t *testing.T) {
				r := newRig(t)
				r.publish("v1")
				own := r.client
				r.client = &mortal{Client: own, end: end, after: after}
				r.restart()
				two := intstr.FromInt32(2)
				r.create(func(spec *v1alpha1.BundleRolloutSpec) { spec.Strategy.Waves[2].MaxConcurrency = &two })
				numbers := map[string]map[string]bool{}
				r.check = func() {
					if process, isMortal := r.client.(*mortal); isMortal && process.dead {
						r.client = own
						r.restart()
					}
					moving := map[string]int{}
					for on, child := range r.children() {
						if numbers[on] == nil {
							numbers[on] = map[string]bool{}
						}
						numbers[on][child.Annotations[v1alpha1.RolloutStartAnnotation]] = true
						if child.Status.ObservedGeneration != child.Generation {
							moving[map[string]string{"c1": "one", "c2": "two", "c3": "two"}[on]]++
						}
					}
					if moving["one"] > 1 || moving["two"] > 1 || moving[""] > 2 {
						t.Errorf("more clusters at once than allowed: %v", moving)
					}
				}
				r.until("v1 complete", complete("v1"))
				r.publish("v2")
				object := r.until("v2 complete", complete("v2"))
				for on, started := range numbers {
					if len(started) != 2 {
						t.Errorf("cluster %s was started %d times for two revisions: %v", on, len(started), started)
					}
				}
				if last := strconv.FormatInt(object.Status.Starts, 10); last != "12" {
					t.Errorf("%s starts were recorded for six clusters and two revisions", last)
				}
			})
		}
	}
}
