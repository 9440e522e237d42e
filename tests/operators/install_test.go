// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// upgraded are the operators that are upgraded, too: with and without webhooks, for all namespaces and for one.
var upgraded = []string{"node-maintenance-operator", "prometheus", "cockroachdb"}

// usual are the operators that every test run installs: with and without webhooks, with a conversion webhook, for all
// namespaces and for one, and those that are upgraded. The release suite installs all.
var usual = []string{
	"argocd-operator", "cert-manager", "cluster-aas-operator", "cockroachdb", "node-maintenance-operator", "odoo-operator", "prometheus", "rabbitmq-cluster-operator",
}

// TestPublishedOperators installs published operators to Ready and removes them to the state before, by an account that
// holds what `satchel rbac` prints as required. Each of three of these rules is taken away before: the plan says so.
func TestPublishedOperators(t *testing.T) {
	bundles := corpus(t)
	if os.Getenv("SATCHEL_FULL") == "" {
		bundles = slices.DeleteFunc(bundles, func(b bundle) bool { return !slices.Contains(usual, b.name) })
	}
	r := newRig(t)
	for _, b := range bundles {
		t.Run(b.name, func(t *testing.T) { r.install(t, b) })
	}
	r.forgetProvided(t)
}

func (r *rig) install(t *testing.T, b bundle) {
	d := &deployment{rig: r, bundle: b, namespace: controlplane.NewNamespace(t, r.cp)}
	rendered := render(t, b.files(), d.object())
	printed := d.rbac(t, b.dir)
	d.grant(t, printed)
	revision := d.publish(t, b.version, b.files())
	before := r.state(t.Context(), t, d.namespace, rendered.Objects)
	rules := requiredRules(t, printed)
	d.refuse(t, rendered, rules)
	start := time.Now()
	d.reconcile(t)
	d.ready(t, revision)
	took := time.Since(start)
	trusting := d.checkInstalled(t, rendered)
	if slices.Contains(upgraded, b.name) {
		rendered.Objects = append(rendered.Objects, d.upgrade(t, rendered).Objects...)
	}
	removal := d.remove(t.Context(), t)
	r.checkRestored(t, before, d.namespace, rendered.Objects)
	d.checkDefinitions(t, rendered.Objects)
	r.forget(t, rendered.Objects)
	t.Logf("%s %s: %d objects, %d webhooks verified, %d rules required, Ready in %.1f s, removed in %.1f s",
		b.name, b.version, len(rendered.Objects), trusting, len(rules), took.Seconds(), removal.Seconds())
}

// refuse creates the deployment while one of the rules is missing, another one each time, and foreign kinds are. The plan
// says so, and nothing is touched. In the end all is there that the bundle needs.
func (d *deployment) refuse(t *testing.T, rendered convert.Result, rules []requiredRule) {
	t.Helper()
	missing := someOf(rules)
	d.change(t, missing[0].without(), missing[0], false)
	d.create(t)
	for _, kind := range d.foreignKinds(t, rendered) {
		d.refuseWithout(t, kind)
	}
	for i, rule := range missing {
		message := d.refused(t)
		if wrong := rule.wrong(message); len(wrong) > 0 {
			t.Errorf("the refusal does not name just %v: %s: %s", rule.PolicyRule, strings.Join(wrong, "; "), message)
		}
		if i < len(missing)-1 {
			d.swap(t, rule, missing[i+1])
		}
	}
	d.checkUntouched(t, rendered)
	last := missing[len(missing)-1]
	d.change(t, last.role, last, true)
}

// checkUntouched makes sure that a refused plan wrote nothing.
func (d *deployment) checkUntouched(t *testing.T, rendered convert.Result) {
	t.Helper()
	for _, object := range rendered.Objects {
		if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s was touched by a refused plan: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// refuseWithout makes sure that the plan names a kind that the cluster lacks, until it is there.
func (d *deployment) refuseWithout(t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	message := d.refused(t)
	if !strings.Contains(message, kind.Kind) || !strings.Contains(message, kind.Group) {
		t.Errorf("the refusal does not name %s: %s", kind, message)
	}
	for line := range strings.Lines(message) {
		if strings.Contains(line, "kind "+kind.Kind) {
			t.Logf("without %s: %s", kind.GroupKind(), line)
		}
	}
	d.provide(t, kind)
	// What the cluster serves is remembered for a second.
	d.eventually(t, t.Context(), "the plan knows "+kind.String(), func(context.Context) (bool, string) {
		d.reconcile(t)
		message := d.refused(t)
		return !strings.Contains(message, "kind "+kind.Kind), message
	})
}

// swap takes another rule away and then gives the first one back. A reconcile may be under way whenever a role changes, and
// reads its rules at different moments: one that saw the second rule has to be over before the first one is there again.
func (d *deployment) swap(t *testing.T, rule, next requiredRule) {
	t.Helper()
	d.change(t, next.without(rule), next, false)
	d.reconcile(t)
	d.refused(t)
	if next.role == rule.role {
		d.change(t, next.without(), rule, true)
	} else {
		d.change(t, rule.role, rule, true)
	}
	d.reconcile(t)
}

// someOf are up to three of the rules.
func someOf(rules []requiredRule) []requiredRule {
	var out []requiredRule
	for i, rule := range rules {
		if i == 0 || i == len(rules)/2 || i == len(rules)-1 {
			out = append(out, rule)
		}
	}
	return out
}

// upgrade replaces what is installed by the next version, with the permissions that it needs.
func (d *deployment) upgrade(t *testing.T, installed convert.Result) convert.Result {
	t.Helper()
	dir := d.nextVersion(t)
	next := render(t, os.DirFS(dir), d.object())
	d.grant(t, d.rbac(t, dir, "--upgrade-from", d.dir))
	d.ready(t, d.publish(t, "next", os.DirFS(dir)))
	d.checkInstalled(t, next)
	kept := map[string]bool{}
	for _, object := range next.Objects {
		kept[object.GetKind()+" "+object.GetName()] = true
	}
	pruned := 0
	for _, object := range installed.Objects {
		if kept[object.GetKind()+" "+object.GetName()] {
			continue
		}
		pruned++
		if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s of the earlier version is still there (%v)", object.GetKind(), object.GetName(), err)
		}
	}
	if pruned == 0 || !kept["ConfigMap "+addition] {
		t.Errorf("the upgrade removed %d objects, and has %v", pruned, kept)
	}
	return next
}

// checkInstalled compares the cluster with what was rendered, and returns how many webhooks were verified.
func (d *deployment) checkInstalled(t *testing.T, rendered convert.Result) int {
	t.Helper()
	for _, object := range rendered.Objects {
		if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	var pods corev1.PodList
	if err := d.admin.List(t.Context(), &pods, client.InNamespace(d.namespace)); err != nil {
		t.Fatal(err)
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	if want := count(rendered.Objects, "Deployment"); running < want {
		t.Errorf("%d Pods run for %d Deployments", running, want)
	}
	return d.checkTrust(t, rendered.Objects)
}
