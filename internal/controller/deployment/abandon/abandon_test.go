// SPDX-License-Identifier: Apache-2.0

package abandon_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
)

var start = time.Date(2026, 11, 23, 16, 0, 0, 0, time.UTC)

// facts are those of a removal without its ServiceAccount, as of the first failure.
func facts(change func(*abandon.Facts)) abandon.Facts {
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	d.Spec.ServiceAccountName = "installer"
	f := abandon.Facts{Object: d, Reason: v1alpha1.ReasonRemovalFailed, AccountGone: true, Limit: 10 * time.Minute, Now: start}
	if change != nil {
		change(&f)
	}
	return f
}

// reported puts the condition of an earlier attempt into the status.
func reported(reason string, since time.Time) func(*abandon.Facts) {
	return func(f *abandon.Facts) {
		f.Object.Status.Conditions = append(f.Object.Status.Conditions, metav1.Condition{
			Type: v1alpha1.RemovalBlockedCondition, Status: metav1.ConditionTrue, Reason: reason, Message: "as before", LastTransitionTime: metav1.NewTime(since),
		})
	}
}

func all(changes ...func(*abandon.Facts)) func(*abandon.Facts) {
	return func(f *abandon.Facts) {
		for _, change := range changes {
			change(f)
		}
	}
}

func remote(reason string) func(*abandon.Facts) {
	return func(f *abandon.Facts) {
		f.AccountGone, f.Reason = false, reason
		f.Object.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "prod"}}}
	}
}

func at(minutes float64) func(*abandon.Facts) {
	return func(f *abandon.Facts) { f.Now = start.Add(time.Duration(minutes * float64(time.Minute))) }
}

func terminating(since float64) func(*abandon.Facts) {
	return func(f *abandon.Facts) { f.Terminating = start.Add(time.Duration(since * float64(time.Minute))) }
}

func asked(value string) func(*abandon.Facts) {
	return func(f *abandon.Facts) { f.Object.Annotations = map[string]string{v1alpha1.AbandonAnnotation: value} }
}

func exists(f *abandon.Facts)    { f.AccountGone = false }
func forEver(f *abandon.Facts)   { f.Limit = -1 }
func passing(f *abandon.Facts)   { f.Transient = true }
func thirdTime(f *abandon.Facts) { f.Failures = 2 }

const (
	never   = -1.0 // minutes: no limit
	silent  = -2.0 // no wait
	account = v1alpha1.ReasonAccountNotFound
	failed  = v1alpha1.ReasonRemovalFailed
)

func TestWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		facts  func(*abandon.Facts)
		wants  string  // reason of the condition
		since  float64 // minutes after the start
		until  float64
		ends   bool
	}{
		"ServiceAccount gone":                {"the limit", nil, account, 0, 10, false},
		"never recorded":                     {"nothing could be tried", func(f *abandon.Facts) { f.Reason, f.AccountGone = account, false }, account, 0, 10, false},
		"just before the limit":              {"counted from the condition", all(reported(account, start), at(9.99)), account, 0, 10, false},
		"at the limit":                       {"counted from the condition", all(reported(account, start), at(10)), account, 0, 10, true},
		"without a limit":                    {"--abandon-after=0", all(forEver, reported(account, start), at(1000)), account, 0, never, false},
		"ServiceAccount lacks permissions":   {"an administrator decides", all(exists, reported(failed, start), at(1000)), failed, 0, never, false},
		"and goes later":                     {"counted from then: it may come back", all(reported(failed, start), at(60)), account, 60, 70, false},
		"it comes back without permissions":  {"no limit any more", all(exists, reported(account, start), at(20)), failed, 20, never, false},
		"hook failed without it":             {"hooks need it as well", func(f *abandon.Facts) { f.Reason = v1alpha1.ReasonHookFailed }, account, 0, 10, false},
		"API server busy":                    {"says nothing", passing, "", 0, silent, false},
		"API server busy for long":           {"the annotation is offered", all(passing, thirdTime), failed, 0, never, false},
		"API server busy at the limit":       {"nothing is abandoned while it cannot be asked", all(passing, reported(account, start), at(20)), account, 0, never, false},
		"namespace goes":                     {"a ServiceAccount cannot be created in it", terminating(0), account, 0, 1, false},
		"namespace goes, without a limit":    {"else it would be terminating for ever", all(terminating(0), forEver, reported(account, start), at(1)), account, 0, 1, true},
		"namespace goes, short limit":        {"the flag is less", all(terminating(0), func(f *abandon.Facts) { f.Limit = 30 * time.Second }), account, 0, 0.5, false},
		"kubeconfig gone":                    {"it may be created again", all(remote(v1alpha1.ReasonKubeConfigNotFound), at(0)), v1alpha1.ReasonKubeConfigNotFound, 0, never, false},
		"kubeconfig and ServiceAccount gone": {"whichever is the cause", all(remote(v1alpha1.ReasonKubeConfigNotFound), func(f *abandon.Facts) { f.AccountGone = true }), account, 0, 10, false},
		"kubeconfig goes with the namespace": {"it cannot be created in it", all(remote(v1alpha1.ReasonKubeConfigNotFound), terminating(0)), v1alpha1.ReasonKubeConfigNotFound, 0, 1, false},
		"cluster does not answer":            {"it may come back", all(remote(v1alpha1.ReasonClusterUnreachable), reported(v1alpha1.ReasonClusterUnreachable, start), at(1000)), v1alpha1.ReasonClusterUnreachable, 0, never, false},
		"and the namespace goes later":       {"counted from then", all(remote(v1alpha1.ReasonClusterUnreachable), reported(v1alpha1.ReasonClusterUnreachable, start), at(61), terminating(60)), v1alpha1.ReasonClusterUnreachable, 0, 70, false},
		"for the whole limit":                {"counted from then", all(remote(v1alpha1.ReasonClusterTooSlow), reported(v1alpha1.ReasonClusterUnreachable, start), at(70), terminating(60)), v1alpha1.ReasonClusterUnreachable, 0, 70, true},
		"cluster does not answer, SA gone":   {"that is not why", all(remote(v1alpha1.ReasonClusterUnreachable), func(f *abandon.Facts) { f.AccountGone = true }), v1alpha1.ReasonClusterUnreachable, 0, never, false},
		"denied over there, SA gone":         {"the user of the kubeconfig lacks permissions", all(remote(failed), func(f *abandon.Facts) { f.AccountGone = true }), failed, 0, never, false},
		"asked for at once":                  {"not before it was reported", asked("now"), account, 0, 10, false},
		"asked for":                          {"by the annotation", all(asked("now"), exists, reported(failed, start)), failed, 0, never, true},
		"asked for while the API is busy":    {"by the annotation", all(asked("now"), passing, reported(failed, start)), failed, 0, never, true},
		"asked for otherwise":                {"only now counts", all(asked("true"), exists, reported(failed, start)), failed, 0, never, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(tc.facts)
			wait, why := abandon.Decide(f)
			if (why != "") != tc.ends {
				t.Errorf("%s: abandoned %q, want %v", tc.reason, why, tc.ends)
			}
			if wait == nil {
				if tc.until != silent {
					t.Fatalf("%s: no wait", tc.reason)
				}
				return
			}
			until := never
			if !wait.Until.IsZero() {
				until = wait.Until.Sub(start).Minutes()
			}
			if got := wait.Since.Sub(start).Minutes(); wait.Reason != tc.wants || got != tc.since || until != tc.until {
				t.Errorf("%s: %s since minute %v until %v, want %s since %v until %v", tc.reason, wait.Reason, got, until, tc.wants, tc.since, tc.until)
			}
		})
	}
}

// The message says what is missing, since when, what happens when, and what the user can do. It is the same at each attempt.
func TestMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		facts func(*abandon.Facts)
		says  []string
	}{
		"limited": {nil, []string{
			"serviceaccount shop/installer does not exist, and bindings that are left do not suffice", "since 2026-11-23T16:00:00Z",
			"abandoned at 2026-11-23T16:10:00Z", "LeftBehind", "create it again, with its permissions", "satchel.dev/abandon=now",
		}},
		"not limited": {exists, []string{"without a time limit", "correct what the condition Ready names", "satchel.dev/abandon=now"}},
		"hopeless":    {terminating(0), []string{"Nothing can be created in namespace shop", "abandoned at 2026-11-23T16:01:00Z", "satchel.dev/abandon=now"}},
		"kubeconfig":  {all(remote(v1alpha1.ReasonKubeConfigNotFound), terminating(0)), []string{"the kubeconfig of secret shop/prod cannot be read", "Nothing can be created", "2026-11-23T16:01:00Z"}},
		"cluster":     {all(remote(v1alpha1.ReasonClusterUnreachable), terminating(0)), []string{"the cluster of secret shop/prod does not answer", "2026-11-23T16:10:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := abandon.Decide(facts(tc.facts))
			for _, text := range tc.says {
				if !strings.Contains(first.Message, text) {
					t.Errorf("%q is not in: %s", text, first.Message)
				}
			}
			if again, _ := abandon.Decide(facts(all(func(f *abandon.Facts) {
				if tc.facts != nil {
					tc.facts(f)
				}
			}, reported(first.Reason, first.Since), at(0.7)))); again.Message != first.Message {
				t.Errorf("it changes to: %s", again.Message)
			}
		})
	}
}
