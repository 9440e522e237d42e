// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/observe"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const (
	aJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.org/a:1"}]}}}
`
	aBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}
subjects: [{kind: ServiceAccount, name: default, namespace: NS}]
`
	aService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: ClusterIP, clusterIP: 198.18.77.7, ports: [{port: 80}]}
`
	aMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
immutable: true
data: {a: "1"}
`
	aSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: one
  replicas: 0
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: a, image: "example.org/a:1"}]}}
`
	aClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`
)

// A change of immutable fields is refused with the field and the remedy, and
// nothing is deleted; with OnImmutableChange the object is recreated, once. Objects
// with data are never deleted.
func TestF27Recreate(t *testing.T) {
	tests := map[string]struct {
		before, from, to string
		field            string
		never            string // why it is not deleted; empty: it is
	}{
		"Job":             {aJob, "a:1", "a:2", "spec.template", ""},
		"binding":         {aBinding, "name: one", "name: two", "roleRef", ""},
		"Service":         {aService, "198.18.77.7", "198.18.77.8", "spec.clusterIPs[0]", ""},
		"ConfigMap":       {aMap, `"1"`, `"2"`, "data", ""},
		"StatefulSet":     {aSet, "serviceName: one", "serviceName: two", "spec", ""},
		"claims go along": {strings.Replace(aSet, "replicas: 0", "replicas: 0\n  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}", 1), "serviceName: one", "serviceName: two", "spec", "spec.persistentVolumeClaimRetentionPolicy"},
		"claim":           {aClaim, "none", "other", "spec", "its data would be lost"},
		"kept":            {strings.Replace(aJob, "name: migrate", "name: migrate, annotations: {satchel.dev/deletion-policy: Orphan}", 1), "a:1", "a:2", "spec.template", "satchel.dev/deletion-policy"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workspace.Everything...)
			w.MustApply(tc.before)
			uid := w.uid(tc.before)
			after := strings.Replace(tc.before, tc.from, tc.to, 1)
			p := w.Plan(w.Objects(after))
			check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
			if err != nil || len(check.Failed) != 1 || !strings.Contains(check.Failed[0].Error(), tc.field+": ") || len(check.Recreate) > 0 {
				t.Fatalf("dry run: %+v, %v", check, err)
			}
			if remedy := "set spec.apply.recreate to OnImmutableChange"; strings.Contains(strings.ToLower(check.Failed[0].Error()), strings.ToLower(remedy)) != (name != "claim") {
				t.Error(check.Failed[0])
			}
			o := w.Options()
			o.Recreate = true
			w.recreates(after, o, uid, tc.never)
		})
	}
}

// recreates applies with permission to recreate until it is done, and expects that to have
// happened once, or not at all.
func (w *world) recreates(after string, o apply.Options, before types.UID, never string) {
	w.T.Helper()
	times := 0
	var last apply.Result
	workspace.Eventually(w.T, "the object is recreated", func() error {
		last = w.ApplyObjects(w.Objects(after), o)
		for _, outcome := range last.Outcomes {
			if outcome.Recreates() {
				times++
			}
		}
		if !last.Complete() && len(last.Errors()) == 0 {
			return errors.New(last.Pending)
		}
		return nil
	})
	now := w.uid(after)
	if never != "" {
		if errs := last.Errors(); len(errs) != 1 || !strings.Contains(errs[0].Error(), never) || now != before || times > 0 {
			w.T.Errorf("got %v, deleted %d times", errs, times)
		}
		return
	}
	if p := w.Plan(w.Objects(after)); times != 1 || now == before || !p.Quiet() {
		w.T.Errorf("recreated %d times, and then: %s %v", times, p.Summary(), last.Errors())
	}
}

func (w *world) uid(manifest string) types.UID {
	w.T.Helper()
	action := w.Plan(w.Objects(manifest)).Stages[0].Actions[0]
	live, err := w.Dynamic.Resource(action.Resource).Namespace(w.Namespace).Get(w.T.Context(), action.Name, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return live.GetUID()
}

// A lost inventory is rebuilt from the objects with the owner's labels that its manager
// applied, in all namespaces that the ServiceAccount may list. Labels alone prove nothing.
func TestRecover(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(application)
	forged := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forged","labels":{"satchel.dev/deployment":"app","satchel.dev/namespace":"` + w.Namespace + `"}}}`
	w.Patch(types.ApplyPatchType, "forged", forged, "attacker")
	for _, wide := range []bool{false, true} {
		if wide {
			w.GrantCluster("installer", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}})
			workspace.Eventually(t, "the right to list", func() error {
				_, err := w.Client.ListMetadata(t.Context(), tenant.Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}}, metav1.ListOptions{Limit: 1})
				return err
			})
		}
		found, err := observe.Recover(t.Context(), w.Client, w.Owner, w.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Entries) != w.Inventory.Len() {
			t.Errorf("found %v of %v", found.Entries, w.Inventory.Entries)
		}
		for _, entry := range found.Entries {
			if !w.Inventory.Has(entry.ID) || entry.Confirmed() {
				t.Errorf("found %+v", entry)
			}
		}
		if wide != (len(found.Unseen) == 0) {
			t.Errorf("not searched: %v", found.Unseen)
		}
	}
}
