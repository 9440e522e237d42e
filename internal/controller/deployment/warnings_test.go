// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Warnings of the API server are in the status and are one event, not one for each
// reconcile.
func TestWarningsOfTheAPIServerAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": file("apiVersion: v1\nkind: Endpoints\nmetadata: {name: old}\nsubsets: []"), // deprecated since 1.33
	})
	key := r.deploy(t, namespace, "app", quick)
	d := r.ready(t, key, published.Revision)
	if !strings.Contains(strings.Join(d.Status.Warnings, "\n"), "deprecated") {
		t.Errorf("the warnings are %q", d.Status.Warnings)
	}
	r.told(t, namespace, "ObjectWarning: ")
	r.looks(t, namespace, "installer", 2)
	told := slices.DeleteFunc(r.events(t, namespace, "app"), func(event string) bool { return !strings.HasPrefix(event, "ObjectWarning: ") })
	if len(told) != 1 || !strings.Contains(told[0], "deprecated") {
		t.Errorf("told: %q", told)
	}
}
