// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// full tells whether this is the release suite, which takes minutes a case.
func full() bool { return os.Getenv("SATCHEL_FULL") != "" }

// releaseOnly skips what takes minutes.
func releaseOnly(t *testing.T) {
	t.Helper()
	if !full() {
		t.Skip("takes minutes: a part of make test-reliability")
	}
}

// lease are the times of leader election: Flux's in the release suite, short ones else.
type lease struct{ duration, renew, retry time.Duration }

func leaseOf() lease {
	if full() {
		return lease{35 * time.Second, 30 * time.Second, 5 * time.Second}
	}
	return lease{6 * time.Second, 4 * time.Second, time.Second}
}

func (l lease) arguments() []string {
	return []string{
		"--enable-leader-election", fmt.Sprintf("--leader-election-lease-duration=%s", l.duration),
		fmt.Sprintf("--leader-election-renew-deadline=%s", l.renew), fmt.Sprintf("--leader-election-retry-period=%s", l.retry),
	}
}

// F23: two replicas of the deployment controller. The leader is told to end, killed, stopped
// for longer than its lease, and cut off from the API server while it applies. Another one leads soon, goes on
// where the first one was, and one that comes back writes nothing.
func TestF23LeaderFailOver(t *testing.T) {
	r := newRig(t)
	r.Kill(deploymentController)
	t.Cleanup(func() {
		if err := r.Start(deploymentController); err != nil {
			t.Error(err)
		}
	})
	l := leaseOf()
	cases := map[string]struct {
		fail   func(*testing.T, *replica)
		within time.Duration
	}{
		"ends": {func(t *testing.T, leader *replica) {
			if took, err := leader.end(t); err != nil || took > 20*time.Second {
				t.Errorf("ended after %s: %v", took, err)
			}
		}, l.retry + 2*time.Second},
		"is killed":  {func(_ *testing.T, leader *replica) { leader.kill() }, l.duration + l.retry},
		"is stopped": {func(t *testing.T, leader *replica) { leader.signal(t, syscall.SIGSTOP) }, l.duration + l.retry},
		"is cut off": {func(_ *testing.T, leader *replica) { leader.line.cut() }, l.duration + l.retry},
	}
	for _, name := range []string{"ends", "is killed", "is stopped", "is cut off"} {
		t.Run(name, func(t *testing.T) { r.failOver(t, l, cases[name].fail, cases[name].within) })
	}
}

// replica is one of two instances that elect a leader.
type replica struct {
	*instance
	line *line
	from string // the address of which its requests come
}

// replicas starts two deployment controllers, each behind a line of its own.
func (r *rig) replicas(t *testing.T, l lease, namespace string) []*replica {
	t.Helper()
	started := make([]*replica, 0, 2)
	for i, name := range []string{namespace + "-first", namespace + "-second"} {
		from := net.IPv4(127, 0, 0, byte(2+i))
		line, kubeconfig := r.behind(t, deploymentController, name, from)
		started = append(started, &replica{
			instance: r.deployments(t, name, nil, append(l.arguments(), kubeconfig)...), line: line, from: from.String(),
		})
	}
	return started
}

func (r *rig) failOver(t *testing.T, l lease, fail func(*testing.T, *replica), within time.Duration) {
	namespace := r.Namespace(t)
	replicas := r.replicas(t, l, namespace)
	leader := r.holder(t, replicas)
	before := r.leader(t, "")

	// It fails in the midst of an apply.
	var writes atomic.Int32
	failed := make(chan struct{})
	var once sync.Once
	r.proxy.onAnswer(func(request *http.Request, code int) {
		if isWrite(request, namespace) && code < 300 && writes.Add(1) >= 20 {
			once.Do(func() { close(failed) })
		}
	})
	key := r.Deploy(t, namespace, "app", r.Push(t, "failover:v1", configMaps("moved", 60)), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Interval.Duration = 2 * time.Second
	})
	select {
	case <-failed:
	case <-time.After(patience):
		t.Fatal("nothing is applied")
	}
	r.proxy.onAnswer(nil)
	began := time.Now()
	fail(t, leader)
	after := r.leader(t, before)
	took := time.Since(began)
	t.Logf("another replica leads after %.1f s, aim %s", took.Seconds(), within)
	if took > 6*within {
		t.Errorf("another replica leads after %s, want %s", took, within)
	}
	d := r.Ready(t, key)
	if d.Status.Inventory.Count != 60 || len(r.named(t, namespace, "moved")) != 60 {
		t.Errorf("%d objects are listed and %d exist, want 60", d.Status.Inventory.Count, len(r.named(t, namespace, "moved")))
	}
	r.waitForNoWrites(t, namespace)
	r.quiet(t, namespace, 6*time.Second)
	r.comeBack(t, leader, namespace)
	if now := r.leader(t, ""); now != after {
		t.Errorf("%s leads after %s came back", now, before)
	}
	r.Remove(t, key) // while a controller runs
	for _, replica := range replicas {
		replica.leave()
	}
}

// comeBack lets a stopped process go on: it must find that it leads no longer, and end
// without having written anything more.
func (r *rig) comeBack(t *testing.T, old *replica, namespace string) {
	t.Helper()
	select {
	case <-old.ended:
		return
	default:
	}
	mark := r.mark(t)
	old.signal(t, syscall.SIGCONT)
	select {
	case <-old.ended:
	case <-time.After(patience):
		t.Error("a leader that lost its lease goes on")
	}
	// Each write is refused once the lease is over. A request that was being sent at the moment of the stop is not: it arrives later.
	const beingSent = 2
	if written := r.writes(t, mark, namespace); len(written) > beingSent {
		t.Errorf("a leader that came back wrote:\n%s", strings.Join(written, "\n"))
	}
}

// leader waits until another process than the given one holds the lease, and returns its identity.
func (r *rig) leader(t *testing.T, other string) string {
	t.Helper()
	holder := ""
	r.Eventually(t, t.Context(), "another replica leads", func(ctx context.Context) (bool, string) {
		var found coordinationv1.Lease
		key := client.ObjectKey{Namespace: installation.Namespace, Name: deploymentController}
		if err := r.Admin.Get(ctx, key, &found); err != nil {
			return false, err.Error()
		}
		if found.Spec.HolderIdentity != nil {
			holder = *found.Spec.HolderIdentity
		}
		return holder != "" && holder != other && time.Since(found.Spec.RenewTime.Time) < leaseOf().duration, holder
	})
	return holder
}

// holder finds out which of the replicas leads, by its log.
func (r *rig) holder(t *testing.T, replicas []*replica) *replica {
	t.Helper()
	var found *replica
	r.Eventually(t, t.Context(), "a replica works", func(context.Context) (bool, string) {
		logs := ""
		for _, replica := range replicas {
			text := r.Log(replica.name)
			if logs += text; strings.Contains(text, "Starting workers") {
				found = replica
				return true, ""
			}
		}
		return false, logs
	})
	return found
}

// isReady tells whether a deployment is.
func isReady(d *v1alpha1.BundleDeployment) bool { return conditions.IsTrue(d, meta.ReadyCondition) }
