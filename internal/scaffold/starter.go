// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert"
)

// Starter is an example bundle: a ServiceAccount, a Deployment that runs on any cluster, and a Service. There is one in
// plain+v0 and one in kustomize.
func Starter(name string, want convert.Format) (Bundle, error) {
	b := Bundle{Format: convert.PlainV0, Files: map[string][]byte{}, Notes: []string{"nothing was named with --from: the bundle holds an example, which runs and does nothing"}}
	folder := "manifests/"
	switch want {
	case "", convert.PlainV0:
	case convert.Kustomize:
		b.Format, folder = want, ""
		b.Files["kustomization.yaml"] = []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- serviceaccount.yaml\n- deployment.yaml\n- service.yaml\n")
	case convert.RegistryV1:
		return Bundle{}, fmt.Errorf("a %s bundle describes an operator: make it with Operator SDK (make bundle), and name the project with --from", want)
	case convert.Helm:
		return Bundle{}, fmt.Errorf("a chart is made with helm create: name its folder with --from")
	default:
		return Bundle{}, fmt.Errorf("the format %q is not known", want)
	}
	for file, text := range map[string]string{"serviceaccount.yaml": starterAccount, "deployment.yaml": starterDeployment, "service.yaml": starterService} {
		b.Files[folder+file] = []byte(strings.ReplaceAll(text, "NAME", name))
	}
	return b, nil
}

const starterAccount = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: NAME
  labels:
    app.kubernetes.io/name: NAME
automountServiceAccountToken: false
`

const starterDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  labels:
    app.kubernetes.io/name: NAME
spec:
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: NAME
  template:
    metadata:
      labels:
        app.kubernetes.io/name: NAME
    spec:
      serviceAccountName: NAME
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: NAME
        image: registry.k8s.io/pause:3.10
        ports:
        - name: http
          containerPort: 8080
        resources:
          requests:
            cpu: 10m
            memory: 16Mi
          limits:
            memory: 64Mi
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
`

const starterService = `apiVersion: v1
kind: Service
metadata:
  name: NAME
  labels:
    app.kubernetes.io/name: NAME
spec:
  selector:
    app.kubernetes.io/name: NAME
  ports:
  - name: http
    port: 80
    targetPort: http
`
