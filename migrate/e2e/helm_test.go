// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
)

// aChart has a Deployment, a ConfigMap with a value, and a hook that Helm leaves behind.
var aChart = fstest.MapFS{
	"Chart.yaml":  {Data: []byte("apiVersion: v2\nname: shop\nversion: 1.0.0\n")},
	"values.yaml": {Data: []byte("greeting: hello\n")},
	"templates/web.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: example.org/web:1, ports: [{containerPort: 80}]}]
`)},
	"templates/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-settings\"}\ndata: {greeting: \"{{ .Values.greeting }}\"}\n")},
	"templates/hook.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-hook", annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
data: {greeting: "{{ .Values.greeting }}"}
`)},
}

// helmRelease installs the chart as Helm does: objects with its labels and annotations, of its field manager, and a
// Secret that remembers the release.
func (o *operator) helmRelease(name string) (hook, secret *unstructured.Unstructured) {
	o.t.Helper()
	result, err := convert.Convert(aChart, convert.Options{Format: convert.Helm, InstallNamespace: o.namespace, Helm: helm.Options{ReleaseName: name}})
	if err != nil {
		o.t.Fatal(err)
	}
	o.objects = result.Objects
	for _, object := range result.Objects {
		object = object.DeepCopy()
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": o.namespace})
		o.create("helm", object)
	}
	hook = o.create("helm", result.Hooks[0].Object.DeepCopy())
	return hook, o.create("helm", o.remembered(name))
}

// remembered is the Secret of a release, as Helm's storage has it.
func (o *operator) remembered(name string) *unstructured.Unstructured {
	o.t.Helper()
	text, err := json.Marshal(&releasev1.Release{
		Name: name, Namespace: o.namespace, Version: 1, Chart: &chartv2.Chart{Metadata: &chartv2.Metadata{Name: "shop", Version: "1.0.0", APIVersion: "v2"}},
		Info: &releasev1.Info{Status: releasecommon.StatusDeployed, FirstDeployed: time.Now(), LastDeployed: time.Now()}, Manifest: "---\n",
	})
	if err != nil {
		o.t.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(text); err != nil {
		o.t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		o.t.Fatal(err)
	}
	data := base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(packed.Bytes()))) // of Helm, and of the API
	return o.manifest(`{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, data: {release: ` + data + `}, metadata: {namespace: NAMESPACE, name: sh.helm.release.v1.` + name + `.v1,
  labels: {owner: helm, name: ` + name + `, status: deployed, version: "1"}}}`)
}

// TestAdoptFromHelm takes a release over: the plan says how, no Pod restarts, no hook runs, and nothing is Helm's
// afterwards. The next change is an upgrade, hooks included.
func TestAdoptFromHelm(t *testing.T) {
	r := newRig(t)
	o := &operator{Rig: r, t: t, namespace: r.Namespace(t)}
	hook, release := o.helmRelease("shop")
	before := o.running()
	key := r.Deploy(t, o.namespace, "shop", r.Push(t, "takeover/"+o.namespace+":chart", aChart), func(d *v1alpha1.BundleDeployment) { d.Spec.Format = v1alpha1.FormatHelm })
	o.refused(key, "belongs to Helm release "+o.namespace+"/shop: adopt the whole release, without a restart, with kubectl satchel-migrate adopt shop -n "+o.namespace)
	o.migrate(kit.ExitOK, "adopt", key.Name, "--yes", "--delete-former")
	d := o.Ready(t, key)
	if hooks := d.Status.Hooks; hooks == nil || hooks.Operation != v1alpha1.HookAdopt || hooks.CompletionTime == nil {
		t.Errorf("status.hooks is %+v", hooks)
	}
	o.undisturbed("after the take-over", before)
	o.owned(key)
	o.gone(release)
	for _, object := range o.objects {
		o.notOfHelm(object)
	}
	left := o.live(hook)
	if left.GetUID() != hook.GetUID() {
		t.Error("the hook ran, although all was installed before")
	}
	r.Until(t, key, "the spec can be edited", func(d *v1alpha1.BundleDeployment) bool {
		d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: []byte(`{"greeting":"good evening"}`)}}
		return r.Admin.Update(t.Context(), d) == nil
	})
	r.Until(t, key, "the upgrade has ended", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Hooks.Operation == v1alpha1.HookUpgrade && d.Status.Hooks.CompletionTime != nil
	})
	if ran := o.live(hook); ran.GetUID() == hook.GetUID() || ran.Object["data"].(map[string]any)["greeting"] != "good evening" { //nolint:forcetypeassert // of the API server
		t.Errorf("the hook of the upgrade did not run: %v", ran.Object)
	}
	o.undisturbed("after the upgrade", before)
}

// notOfHelm makes sure that an object has no label, annotation or field of Helm any more.
func (o *operator) notOfHelm(object *unstructured.Unstructured) {
	o.t.Helper()
	live := o.live(object)
	for key := range live.GetAnnotations() {
		if strings.HasPrefix(key, "meta.helm.sh/") {
			o.t.Errorf("%s has the annotation %s", object.GetName(), key)
		}
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == "helm" {
			o.t.Errorf("helm holds fields of %s: %s", object.GetName(), entry.FieldsV1)
		}
	}
}

func (o *operator) live(object *unstructured.Unstructured) *unstructured.Unstructured {
	o.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := o.Admin.Get(o.t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
		o.t.Fatal(err)
	}
	return live
}
