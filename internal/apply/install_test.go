// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const application = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {password: CANARY-install}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      serviceAccountName: web
      containers: [{name: web, image: registry.example/web:v1}]
`

// A whole application is installed, found unchanged, becomes healthy, is upgraded
// by one object, and is removed to the last object.
func TestF3LifeOfAnApplication(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	result := w.MustApply(application)
	if diff := cmp.Diff(map[apply.Kind]int{apply.Created: 7}, workspace.Kinds(result)); diff != "" {
		t.Fatalf("first install (-want +got):\n%s", diff)
	}
	p := w.Plan(w.Objects(application))
	if !p.Quiet() {
		t.Fatalf("right after the install: %s", p.Summary())
	}
	w.healthy(p.Objects())
	if p := w.Plan(w.Objects(application)); !p.Quiet() {
		t.Fatalf("after its controllers wrote its status: %s", p.Summary())
	}
}

type fmtError string

func (e fmtError) Error() string { return string(e) }

// healthy waits until the objects are.
func (w *world) healthy(objects []plan.Object) {
	w.T.Helper()
	workspace.Eventually(w.T, "health", func() error {
		report, err := health.Check(w.T.Context(), w.Client, objects, nil)
		if err == nil && !report.Healthy() {
			err = fmtError(report.Message())
		}
		return err
	})
}
