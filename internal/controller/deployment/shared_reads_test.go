// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// Deployments that are created at once do not each read the objects that do not exist yet. Their plans have to be made within one
// second of another's, which a busy machine may miss: then it is repeated.
func TestInstallsShareReads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var said string
	for range 5 {
		shared, text := r.installsShareReads(t)
		if shared {
			return
		}
		said = text
	}
	t.Errorf("%s, want at most half as many reads as objects, and some of them LISTs", said)
}

func (r *rig) installsShareReads(t *testing.T) (bool, string) {
	t.Helper()
	namespace := r.namespace(t)
	const count = 20
	name := func(i int) string { return fmt.Sprintf("app%02d", i) }
	revisions := map[string]string{}
	for i := range count {
		files := fstest.MapFS{"a.yaml": configMap(name(i), "one"), "b.yaml": file("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name(i) + "}\n")}
		revisions[name(i)] = r.publish(t, namespace, name(i), "v1", files).Revision
	}
	mark := r.mark(t)
	keys := make([]client.ObjectKey, count)
	for i := range count {
		keys[i] = r.deploy(t, namespace, name(i), rarely)
	}
	for i, key := range keys {
		r.ready(t, key, revisions[name(i)])
		r.holds(t, namespace, name(i), "one")
	}
	lists := 0
	reads := r.audit(t, mark, func(e controlplane.AuditEvent) bool {
		read := e.ImpersonatedUser == "system:serviceaccount:"+namespace+":installer" && !strings.Contains(e.RequestURI, "labelSelector") &&
			(e.Verb == "get" || e.Verb == "list") && (e.Resource == "configmaps" || e.Resource == "serviceaccounts")
		if read && e.Verb == "list" {
			lists++
		}
		return read
	})
	return len(reads) <= count && lists > 0, fmt.Sprintf("%d deployments read %d times, of which %d LISTs, before their first apply: %v", count, len(reads), lists, reads)
}
