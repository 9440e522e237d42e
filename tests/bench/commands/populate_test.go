// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// population is a namespace with many deployments, of which one has objects.
type population struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	client    client.Client
	namespace string
	target    string // identity of the cluster
	pod       string
}

const (
	listedObjects = 20 // in each inventory
	digest        = "sha256:cccccccccccc1111111111111111111111111111111111111111111111111111"
	revision      = "v1.3.0@" + digest
)

// populated makes deployments and sources, and the objects of the one in the middle.
func populated(t *testing.T, cp *controlplane.ControlPlane, n int) population {
	t.Helper()
	c, err := installation.Client(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	p := population{t: t, cp: cp, client: c, namespace: controlplane.NewNamespace(t, cp)}
	system := new(corev1.Namespace)
	if err := c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	p.target = string(system.UID)
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	if err := errors.Join(parallel.Each(t.Context(), 16, numbers, p.create)...); err != nil {
		t.Fatal(err)
	}
	p.install(name(n / 2))
	return p
}

func name(i int) string { return fmt.Sprintf("app-%04d", i) }

// arguments are those of a line of the table.
func (p population) arguments(line string, deployments int) []string {
	bundle := filepath.Join(installation.Root(), "tests", "bundles", "sample-operator", "v0.2.0")
	folder := filepath.Join(installation.Root(), "tests", "bundles", "greeter")
	catalog := filepath.Join(installation.Root(), "internal", "cli", "testdata", "resolve", "shop.yaml")
	args := strings.Split(strings.NewReplacer("CATALOG", catalog, "app-0500", name(deployments/2), "POD", p.pod, "DIGEST", digest, "BUNDLE", bundle, "FOLDER", folder, "FILE", filepath.Join(p.t.TempDir(), "file")).Replace(line), " ")
	if strings.Contains(line, "BUNDLE") || strings.Contains(line, "CATALOG") {
		return args // asks no cluster
	}
	return append([]string{args[0], "--kubeconfig", p.cp.KubeconfigPath(), "-n", p.namespace}, args[1:]...)
}

// create makes a deployment and its source as the controllers would have left them.
func (p population) create(ctx context.Context, i int) error {
	now := metav1.Now()
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: "revision v1.3.0 is applied and healthy",
			ObservedGeneration: 1, LastTransitionTime: now}
	}
	spec := v1alpha1.BundleSourceSpec{Interval: v1alpha1.Duration{Duration: 10 * time.Minute}, Sources: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/app:v1.3.0"}}}}
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name(i)}, Spec: spec}
	if err := p.client.Create(ctx, source); err != nil {
		return err
	}
	source.Status = v1alpha1.BundleSourceStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{condition(meta.ReadyCondition)},
		Artifact: &meta.Artifact{Path: "a.tar.gz", URL: "http://sources/a.tar.gz", Revision: revision, Digest: digest, LastUpdateTime: now},
		Resolved: []v1alpha1.ResolvedSource{{Reference: "v1.3.0", Digest: digest, VerifiedBy: "key sha256:0123"}}}
	if err := p.client.Status().Update(ctx, source); err != nil {
		return err
	}
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name(i)},
		Spec: v1alpha1.BundleDeploymentSpec{Source: &spec, ServiceAccountName: "installer"}}
	if err := p.client.Create(ctx, d); err != nil {
		return err
	}
	listed, err := p.inventory(name(i)).Encode()
	if err != nil {
		return err
	}
	d.Status = v1alpha1.BundleDeploymentStatus{ObservedGeneration: 1, Inventory: listed,
		Attempted: v1alpha1.AttemptedRevision{Revision: revision}, Applied: v1alpha1.AppliedRevision{Revision: revision, CompletionTime: &now}, Healthy: v1alpha1.HealthyRevision{Revision: revision},
		Plan: &v1alpha1.PlanStatus{Revision: revision, Create: listedObjects}, Format: v1alpha1.FormatPlainV0,
		Objects: &v1alpha1.ObjectCounts{Applied: listedObjects}}
	for _, kind := range []string{meta.ReadyCondition, v1alpha1.SourceReadyCondition, v1alpha1.ConvertedCondition, v1alpha1.PlannedCondition, v1alpha1.AppliedCondition, v1alpha1.HealthyCondition} {
		d.Status.Conditions = append(d.Status.Conditions, condition(kind))
	}
	if i == 1 {
		waits := condition(v1alpha1.ApprovalPendingCondition)
		waits.Reason, waits.Message = v1alpha1.ReasonApprovalRequired, "the plan waits for an approval"
		d.Status.Plan.Digest = digest
		d.Status.Conditions = append(d.Status.Conditions, waits)
	}
	for at := range 5 {
		d.Status.History = append(d.Status.History, v1alpha1.RevisionRecord{Revision: fmt.Sprintf("v1.%d.0@%s", 3-at, digest), Digest: digest, Generation: 1,
			StartTime: now, CompletionTime: &now, Outcome: v1alpha1.OutcomeHealthy, Create: 3, Update: 2})
	}
	return p.client.Status().Update(ctx, d)
}

// inventory lists a Deployment and ConfigMaps.
func (p population) inventory(of string) inventory.Inventory {
	entries := []inventory.Entry{{ID: inventory.ID{Group: "apps", Kind: "Deployment", Namespace: p.namespace, Name: of}, Version: "v1"}}
	for i := range listedObjects - 1 {
		entries = append(entries, inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: p.namespace, Name: fmt.Sprintf("%s-%d", of, i)}, Version: "v1"})
	}
	return inventory.New(p.target, entries...)
}

// huge makes a deployment with many objects.
func (p population) huge(objects int) {
	p.t.Helper()
	const of = "huge"
	labels := inventory.Owner{Namespace: p.namespace, Name: of}.Labels()
	numbers := make([]int, objects)
	for i := range numbers {
		numbers[i] = i
	}
	called := func(i int) string { return fmt.Sprintf("%s-%05d", of, i) }
	created := parallel.Each(p.t.Context(), 16, numbers, func(ctx context.Context, i int) error {
		return p.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: called(i), Labels: labels}})
	})
	entries := make([]inventory.Entry, 0, objects)
	for i := range objects {
		entries = append(entries, inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: p.namespace, Name: called(i)}, Version: "v1"})
	}
	listed, err := inventory.New(p.target, entries...).Encode()
	if err := errors.Join(append(created, err)...); err != nil {
		p.t.Fatal(err)
	}
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: of},
		Spec: v1alpha1.BundleDeploymentSpec{SourceRef: &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: name(0)}, ServiceAccountName: "installer"}}
	if err := p.client.Create(p.t.Context(), d); err != nil {
		p.t.Fatal(err)
	}
	d.Status.Inventory = listed
	if err := p.client.Status().Update(p.t.Context(), d); err != nil {
		p.t.Fatal(err)
	}
}

// install creates the objects of one deployment, and one without an owner, and waits for its Pod.
func (p *population) install(of string) {
	p.t.Helper()
	labels := inventory.Owner{Namespace: p.namespace, Name: of}.Labels()
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "foreign"}}}
	for i := range listedObjects - 1 {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: fmt.Sprintf("%s-%d", of, i), Labels: labels}})
	}
	selected := map[string]string{"app": of}
	objects = append(objects, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: of, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: selected},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/app:v1.3.0"}}}},
	}})
	for _, o := range objects {
		if err := p.client.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
	err := wait.PollUntilContextTimeout(p.t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pods := new(corev1.PodList)
		err := p.client.List(ctx, pods, client.InNamespace(p.namespace), client.MatchingLabels(selected))
		if len(pods.Items) > 0 {
			p.pod = pods.Items[0].Name
		}
		return p.pod != "", err
	})
	if err != nil {
		p.t.Fatalf("the Pod of %s does not come: %v", of, err)
	}
}
