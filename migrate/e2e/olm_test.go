// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
	"github.com/satchel-dev/satchel/migrate/internal/plugin"
	"github.com/satchel-dev/satchel/tests/e2erig"
	"github.com/satchel-dev/satchel/tests/installation"
)

// operator is the sample operator as another installer has it.
type operator struct {
	*e2erig.Rig

	t         *testing.T
	namespace string
	image     string
	objects   []*unstructured.Unstructured
}

const (
	operatorName    = "sample-operator"
	operatorVersion = "sample-operator.v0.1.0"
	properties      = `{"properties":[{"type":"olm.package","value":{"packageName":"sample-operator","version":"0.1.0"}}]}`
)

// newOperator pushes the bundle, and converts it as the other installer does.
func newOperator(t *testing.T, options registryv1.Options) *operator {
	t.Helper()
	r := newRig(t)
	files := os.DirFS(filepath.Join(installation.Root(), "tests", "bundles", operatorName, "v0.1.0"))
	o := &operator{Rig: r, t: t, namespace: r.Namespace(t)}
	digest, err := r.Registry.Push(t.Context(), "takeover/"+o.namespace+":v0.1.0", files)
	if err != nil {
		t.Fatal(err)
	}
	o.image = r.Registry.Host() + "/takeover/" + o.namespace + "@" + digest
	options.WatchNamespaces = []string{o.namespace}
	result, err := convert.Convert(files, convert.Options{InstallNamespace: o.namespace, RegistryV1: options})
	if err != nil {
		t.Fatal(err)
	}
	o.objects = result.Objects
	return o
}

// define makes the cluster serve a kind of the other installer, with fields of any name.
func (o *operator) define(group, version, kind string, scope apiextensionsv1.ResourceScope) {
	o.t.Helper()
	singular := strings.ToLower(kind)
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": singular + "s." + group},
		"spec": map[string]any{
			"group": group, "scope": string(scope), "names": map[string]any{"plural": singular + "s", "singular": singular, "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}
	object := &unstructured.Unstructured{Object: crd}
	if err := o.Admin.Create(o.t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		o.t.Fatal(err)
	}
	o.Eventually(o.t, o.t.Context(), kind+" is served", func(ctx context.Context) (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version)
		list.SetKind(kind + "List")
		err := o.Admin.List(ctx, list)
		return err == nil, "not yet"
	})
}

// create stores an object as a field manager.
func (o *operator) create(manager string, object *unstructured.Unstructured) *unstructured.Unstructured {
	o.t.Helper()
	err := o.Admin.Create(o.t.Context(), object, client.FieldOwner(manager))
	if apierrors.IsAlreadyExists(err) && object.GetKind() == "CustomResourceDefinition" {
		err = nil // another test left it
	}
	if err != nil {
		o.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	o.t.Cleanup(func() {
		_ = client.IgnoreNotFound(o.Admin.Delete(context.WithoutCancel(o.t.Context()), object.DeepCopy()))
	})
	return object
}

// manifest is an object written down.
func (o *operator) manifest(text string) *unstructured.Unstructured {
	o.t.Helper()
	object := &unstructured.Unstructured{}
	text = strings.NewReplacer("NAMESPACE", o.namespace, "IMAGE", o.image, "VERSION", operatorVersion, "PROPERTIES", properties).Replace(text)
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		o.t.Fatal(err)
	}
	return object
}

// migrate runs the command line in the namespace and returns all that it writes.
func (o *operator) migrate(code int, args ...string) string {
	o.t.Helper()
	var out bytes.Buffer
	args = append([]string{"-n", o.namespace}, args...)
	if got := o.run(&out, &out, args...); got != code {
		o.t.Fatalf("kubectl satchel-migrate %s: exit %d, want %d\n%s", strings.Join(args, " "), got, code, &out)
	}
	return out.String()
}

// run runs the command line as the administrator.
func (o *operator) run(out, diagnostics io.Writer, args ...string) int {
	return plugin.Run(o.t.Context(), kit.Program{
		Path: plugin.File, Version: kit.BuildVersion(""), Now: time.Now,
		Streams: genericiooptions.IOStreams{In: new(bytes.Buffer), Out: out, ErrOut: diagnostics},
	}, append([]string{"--kubeconfig", o.CP.KubeconfigPath()}, args...))
}

// catalog creates the BundleCatalog with the bundle that is installed, and with an upgrade, which is not installed.
func (o *operator) catalog() {
	o.t.Helper()
	var fbc strings.Builder
	fbc.WriteString(`{"schema":"olm.package","name":"sample-operator"}
{"schema":"olm.channel","package":"sample-operator","name":"alpha","entries":[{"name":"sample-operator.v0.1.0"},{"name":"sample-operator.v0.2.0","replaces":"sample-operator.v0.1.0"}]}
`)
	for version, image := range map[string]string{"0.1.0": o.image, "0.2.0": o.Registry.Host() + "/absent@sha256:" + strings.Repeat("0", 64)} {
		fmt.Fprintf(&fbc, `{"schema":"olm.bundle","package":"sample-operator","name":"sample-operator.v%s","image":%q,"properties":[{"type":"olm.package","value":{"packageName":"sample-operator","version":%q}}]}`+"\n", version, image, version)
	}
	repository := "catalog/" + o.namespace + ":latest"
	if _, err := o.Registry.Push(o.t.Context(), repository, fstest.MapFS{"configs/catalog.json": {Data: []byte(fbc.String())}}); err != nil {
		o.t.Fatal(err)
	}
	object := &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "community"}}
	object.Spec.Source.Image = &v1alpha1.ImageSource{Reference: o.Registry.Host() + "/" + repository, Insecure: true}
	if err := o.Admin.Create(o.t.Context(), object); err != nil {
		o.t.Fatal(err)
	}
}

// keeps wants the adopted version to be that of the catalog, and no upgrade.
func (o *operator) keeps(key client.ObjectKey) {
	o.t.Helper()
	var d v1alpha1.BundleDeployment
	if err := o.Admin.Get(o.t.Context(), key, &d); err != nil {
		o.t.Fatal(err)
	}
	now := d.Status.Catalog
	if now == nil || now.Resolved == nil || now.Installed == nil || now.Resolved.Bundle != operatorVersion || now.Installed.Bundle != operatorVersion || now.Resolved.Catalog != "community" {
		o.t.Errorf("spec.catalog %+v has the status %+v", d.Spec.Catalog, now)
	}
}

// running is what must not change: Pods, and what makes them.
type running struct {
	pods map[string]types.UID
	sets map[string]types.UID
	spec string               // of the Deployment: its generation counts its annotations too
	uids map[string]types.UID // of all objects of the bundle
}

func (o *operator) running() running {
	o.t.Helper()
	now := running{pods: map[string]types.UID{}, sets: map[string]types.UID{}, uids: map[string]types.UID{}}
	o.Eventually(o.t, o.t.Context(), "a Pod runs", func(ctx context.Context) (bool, string) {
		var pods corev1.PodList
		err := o.Admin.List(ctx, &pods, client.InNamespace(o.namespace))
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				now.pods[pods.Items[i].Name] = pods.Items[i].UID
			}
		}
		return err == nil && len(now.pods) > 0 && len(now.pods) == len(pods.Items), "no Pod"
	})
	var sets appsv1.ReplicaSetList
	if err := o.Admin.List(o.t.Context(), &sets, client.InNamespace(o.namespace)); err != nil {
		o.t.Fatal(err)
	}
	for i := range sets.Items {
		now.sets[sets.Items[i].Name] = sets.Items[i].UID
	}
	for _, object := range o.objects {
		live := object.DeepCopy()
		if err := o.Admin.Get(o.t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
			o.t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			continue
		}
		now.uids[object.GetKind()+" "+object.GetName()] = live.GetUID()
		if object.GetKind() == "Deployment" {
			spec, err := yaml.Marshal(live.Object["spec"])
			if err != nil {
				o.t.Fatal(err)
			}
			now.spec = string(spec)
		}
	}
	return now
}

// undisturbed compares with an earlier look.
func (o *operator) undisturbed(when string, before running) {
	o.t.Helper()
	now := o.running()
	if !maps.Equal(before.pods, now.pods) || !maps.Equal(before.sets, now.sets) {
		o.t.Errorf("%s: Pods restarted: %v, now %v; %v, now %v", when, before.pods, now.pods, before.sets, now.sets)
	}
	if before.spec != now.spec || now.spec == "" {
		o.t.Errorf("%s: the Deployment has the spec\n%s\nand had\n%s", when, now.spec, before.spec)
	}
	for name, uid := range before.uids {
		if now.uids[name] != uid {
			o.t.Errorf("%s: %s was replaced", when, name)
		}
	}
}

// collected waits until the garbage collector has dealt with what was deleted so far: it is shown an object of its own.
func (o *operator) collected() {
	o.t.Helper()
	owner := o.create("test", o.manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NAMESPACE, generateName: owner-}}`))
	owned := o.manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NAMESPACE, generateName: owned-}}`)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID()}})
	owned = o.create("test", owned)
	if err := o.Admin.Delete(o.t.Context(), owner); err != nil {
		o.t.Fatal(err)
	}
	o.gone(owned)
}

func (o *operator) gone(object *unstructured.Unstructured) {
	o.t.Helper()
	o.Eventually(o.t, o.t.Context(), object.GetKind()+" "+object.GetName()+" is gone", func(ctx context.Context) (bool, string) {
		err := o.Admin.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
		return apierrors.IsNotFound(err) || meta.IsNoMatchError(err), "still there"
	})
}

// refused waits until the plan of what was migrated is refused, because the objects have another owner.
func (o *operator) refused(key client.ObjectKey, of string) {
	o.t.Helper()
	o.Until(o.t, key, "the plan is refused", func(d *v1alpha1.BundleDeployment) bool {
		planned := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.PlannedCondition)
		return planned != nil && planned.Status == metav1.ConditionFalse && strings.Contains(planned.Message, of)
	})
}

// TestAdoptFromOLM migrates a Subscription from the cluster, applies what comes out, and adopts what OLM runs: no Pod
// restarts, and nothing goes with the ClusterServiceVersion but what only OLM needed.
func TestAdoptFromOLM(t *testing.T) {
	o := newOperator(t, registryv1.Options{OperatorConditions: true, DeploymentConfig: annotating(t, map[string]string{"olm.operatorGroup": "watched", "operatorframework.io/properties": properties})})
	for _, kind := range []string{"Subscription", "InstallPlan", "ClusterServiceVersion"} {
		o.define("operators.coreos.com", "v1alpha1", kind, apiextensionsv1.NamespaceScoped)
	}
	o.define("operators.coreos.com", "v1", "OperatorGroup", apiextensionsv1.NamespaceScoped)
	o.create("kubectl-create", o.manifest(`
{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {namespace: NAMESPACE, name: watched}, spec: {targetNamespaces: [NAMESPACE]}}`))
	subscription := o.create("kubectl-create", o.manifest(`
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {namespace: NAMESPACE, name: sample}
spec: {name: sample-operator, channel: alpha, source: community, sourceNamespace: olm}
status: {installedCSV: VERSION}`))
	o.create("catalog", o.manifest(`
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {namespace: NAMESPACE, name: install-abcde}
spec: {approved: true, clusterServiceVersionNames: [VERSION]}
status: {bundleLookups: [{identifier: VERSION, path: IMAGE}]}`))
	csv := o.create("catalog", o.manifest(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {namespace: NAMESPACE, name: VERSION, annotations: {olm.operatorGroup: watched, operatorframework.io/properties: 'PROPERTIES'}}
spec: {version: 0.1.0}`))
	leftovers := o.installAsOLM(csv)
	before := o.running()

	o.catalog()
	key := o.Apply(t, o.output(kit.ExitOK, "manifests", "--cluster", "-n", o.namespace))
	o.refused(key, "OLM")
	shown := o.migrate(kit.ExitOK, "adopt", key.Name, "--dry-run")
	for _, want := range []string{"No Pod restarts.", "ClusterServiceVersion " + o.namespace + "/" + operatorVersion, "Role.rbac.authorization.k8s.io " + o.namespace + "/olm-named", "Deployment.apps " + o.namespace + "/sample-operator"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing in\n%s", want, shown)
		}
	}
	o.undisturbed("after a dry run", before)
	o.refused(key, "OLM")

	t.Log(o.migrate(kit.ExitOK, "adopt", key.Name, "--yes", "--delete-former", "--delete-leftovers"))
	for _, gone := range append(leftovers, csv, subscription) {
		o.gone(gone)
	}
	o.collected()
	o.Ready(t, key)
	o.undisturbed("after the take-over", before)
	o.owned(key)
	o.keeps(key)
}

// installAsOLM creates what OLM makes of the bundle, and returns what it makes under names of its own.
func (o *operator) installAsOLM(csv *unstructured.Unstructured) []*unstructured.Unstructured {
	o.t.Helper()
	var others []*unstructured.Unstructured
	owner := metav1.OwnerReference{APIVersion: csv.GetAPIVersion(), Kind: csv.GetKind(), Name: csv.GetName(), UID: csv.GetUID(),
		Controller: new(false), BlockOwnerDeletion: new(false)}
	for i, object := range o.objects {
		object = object.DeepCopy()
		manager := "olm"
		switch object.GetKind() {
		case "CustomResourceDefinition", "ServiceAccount", "Service", "ConfigMap":
			manager = "catalog"
		}
		labels := maps.Clone(object.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels["olm.managed"] = "true"
		if strings.HasPrefix(object.GetKind(), "Role") || strings.HasPrefix(object.GetKind(), "ClusterRole") {
			object.SetName("olm-named-" + object.GetName()[:20] + o.namespace)
			if object.GetKind() == "Role" {
				object.SetName("olm-named")
			}
			others = append(others, object)
			o.objects[i] = nil // OLM's have other names
		}
		if object.GetKind() != "CustomResourceDefinition" {
			labels["olm.owner"], labels["olm.owner.kind"], labels["olm.owner.namespace"] = csv.GetName(), csv.GetKind(), o.namespace
			if object.GetNamespace() != "" {
				object.SetOwnerReferences([]metav1.OwnerReference{owner})
			}
		}
		object.SetLabels(labels)
		o.create(manager, object)
	}
	o.objects = slices.DeleteFunc(o.objects, func(object *unstructured.Unstructured) bool { return object == nil })
	return others
}

// owned wants each object of the bundle to be the deployment's, without a trace of its former owner.
func (o *operator) owned(key client.ObjectKey) {
	o.t.Helper()
	for _, object := range o.objects {
		live := object.DeepCopy()
		if err := o.Admin.Get(o.t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
			o.t.Error(err)
			continue
		}
		for label := range live.GetLabels() {
			if strings.HasPrefix(label, "olm.") || label == "app.kubernetes.io/managed-by" {
				o.t.Errorf("%s %s has the label %s", live.GetKind(), live.GetName(), label)
			}
		}
		if live.GetLabels()[v1alpha1.DeploymentLabel] != key.Name || len(live.GetOwnerReferences()) > 0 || live.GetAnnotations()[v1alpha1.OrphanedAnnotation] != "" {
			o.t.Errorf("%s %s is not taken over: %v %v %v", live.GetKind(), live.GetName(), live.GetLabels(), live.GetAnnotations(), live.GetOwnerReferences())
		}
	}
}

// TestAdoptFromOLMv1 takes over what a ClusterExtension controls by a Helm release, and then removes both, with all that
// they own: nothing of it is left, and so everything stays.
func TestAdoptFromOLMv1(t *testing.T) {
	o := newOperator(t, registryv1.Options{})
	o.define("olm.operatorframework.io", "v1", "ClusterExtension", apiextensionsv1.ClusterScoped)
	extension := o.create("kubectl-create", o.manifest(`
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample-NAMESPACE}
spec:
  namespace: NAMESPACE
  serviceAccount: {name: installer}
  source: {sourceType: Catalog, catalog: {packageName: sample-operator}}
  config: {configType: Inline, inline: {watchNamespace: NAMESPACE}}
status:
  install: {bundle: {name: VERSION, version: 0.1.0}}
  conditions: [{type: Installed, status: "True", reason: Succeeded, message: Installed bundle IMAGE successfully}]`))
	release := o.create("helm", o.manifest(`
{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {namespace: NAMESPACE, name: sh.helm.release.v1.sample.v1, labels: {owner: helm, name: sample}}}`))
	o.installAsExtension(extension)
	before := o.running()

	migrated := o.output(kit.ExitOK, "manifests", "--cluster", "-n", o.namespace)
	at := strings.Index(migrated, "# From ClusterExtension sample-"+o.namespace)
	document, _, _ := strings.Cut(migrated[at:], "\n---\n")
	o.catalog()
	key := o.Apply(t, document)
	o.refused(key, "Helm release")
	shown := o.migrate(kit.ExitOK, "adopt", key.Name, "--yes")
	if !strings.Contains(shown, "No Pod restarts.") || !strings.Contains(shown, "kubectl delete clusterextension.olm.operatorframework.io sample-"+o.namespace+" --cascade=orphan") {
		t.Error(shown)
	}
	o.Ready(t, key)
	o.undisturbed("after the take-over", before)
	for _, former := range []*unstructured.Unstructured{extension, release} {
		if err := o.Admin.Delete(t.Context(), former, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
		o.gone(former)
	}
	o.collected()
	o.undisturbed("after the former owner is gone", before)
	o.owned(key)
	o.keeps(key)
	o.Ready(t, key)
}

// installAsExtension creates what OLM v1 makes of the bundle by a Helm release.
func (o *operator) installAsExtension(extension *unstructured.Unstructured) {
	o.t.Helper()
	owner := metav1.OwnerReference{APIVersion: extension.GetAPIVersion(), Kind: extension.GetKind(), Name: extension.GetName(), UID: extension.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true)}
	for _, object := range o.objects {
		object = object.DeepCopy()
		if object.GetKind() == "CustomResourceDefinition" {
			o.create("kubectl-create", object)
			continue
		}
		labels, annotations := maps.Clone(object.GetLabels()), maps.Clone(object.GetAnnotations())
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		labels["olm.operatorframework.io/owner-kind"], labels["olm.operatorframework.io/owner-name"] = extension.GetKind(), extension.GetName()
		labels["app.kubernetes.io/managed-by"] = "Helm"
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = "sample", o.namespace
		object.SetLabels(labels)
		object.SetAnnotations(annotations)
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
		o.create("helm", object)
	}
}

// annotating is a deploymentConfig that adds annotations.
func annotating(t *testing.T, annotations map[string]string) json.RawMessage {
	t.Helper()
	config, err := json.Marshal(deploymentconfig.Config{Annotations: annotations})
	if err != nil {
		t.Fatal(err)
	}
	return config
}
