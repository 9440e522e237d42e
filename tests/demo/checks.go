// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Images of the operator's versions, as in tests/bundles.
const (
	imageV1 = "registry.k8s.io/pause:3.9"
	imageV2 = "registry.k8s.io/pause:3.10"
)

// install applies what was committed and follows it until it is ready.
func (d *demo) install(ctx context.Context) error {
	d.chapterf("Install: clone the repository, apply the manifests, and watch")
	d.text("They ask for an interval of " + demoInterval + " so that the demo is short; normally it is 10m.")
	if err := d.pull(ctx); err != nil {
		return err
	}
	if d.kubeconfig != "" {
		d.onCleanUp(d.removeSamples)
	}
	for _, name := range []string{operatorName, greeterName} {
		if err := d.await(ctx, name+" to become ready", d.ready(name, "")); err != nil {
			return err
		}
	}
	if err := d.checkObjects(ctx, operatorName, append(operatorObjects(), object("v1", "ConfigMap", samplesNamespace, "sample-operator-phrases"))); err != nil {
		return err
	}
	if err := d.checkObjects(ctx, greeterName, greeterObjects()); err != nil {
		return err
	}
	return d.checkImage(ctx, imageV1)
}

// operatorObjects are objects that both versions of the operator have.
func operatorObjects() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "greetings.samples.satchel.dev"),
		object("v1", "ServiceAccount", samplesNamespace, operatorName),
		object("v1", "Service", samplesNamespace, "sample-operator-metrics"),
		object("apps/v1", "Deployment", samplesNamespace, operatorName),
	}
}

func greeterObjects() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("v1", "ConfigMap", samplesNamespace, greeterName),
		object("v1", "Service", samplesNamespace, greeterName),
		object("apps/v1", "Deployment", samplesNamespace, greeterName),
	}
}

// ready checks that a deployment is ready, at its newest generation and at another revision than the given one.
func (d *demo) ready(name, notRevision string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		b, err := d.deployment(ctx, name)
		if err != nil {
			return "", err
		}
		condition := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ReadyCondition)
		switch {
		case b.Status.ObservedGeneration != b.Generation:
			return "the controller has not looked at it yet", nil
		case b.Status.Applied.Revision == "" || b.Status.Applied.Revision == notRevision:
			return "no new revision has been applied yet", nil
		case condition == nil || condition.Status != metav1.ConditionTrue:
			return fmt.Sprintf("it is not ready: %s", message(condition)), nil
		case b.Status.Healthy.Revision != b.Status.Applied.Revision:
			return "the revision is not healthy yet", nil
		}
		return "", nil
	}
}

func message(c *metav1.Condition) string {
	if c == nil {
		return "no condition says why"
	}
	return c.Reason + ": " + c.Message
}

func (d *demo) deployment(ctx context.Context, name string) (*v1alpha1.BundleDeployment, error) {
	var b v1alpha1.BundleDeployment
	err := d.cluster.Get(ctx, types.NamespacedName{Namespace: samplesNamespace, Name: name}, &b)
	return &b, err
}

// checkObjects verifies on the cluster what the status claims: the objects exist, carry the labels of their
// deployment and were applied by its field manager, and all Pods of its Deployments run.
func (d *demo) checkObjects(ctx context.Context, name string, objects []*unstructured.Unstructured) error {
	b, err := d.deployment(ctx, name)
	if err != nil {
		return err
	}
	if b.Status.Objects == nil || b.Status.Inventory == nil || int(b.Status.Objects.Applied) < len(objects) ||
		b.Status.Objects.Applied != b.Status.Inventory.Count {
		return fmt.Errorf("the status of %s does not add up: objects %+v, inventory %+v, want at least %d objects",
			name, b.Status.Objects, b.Status.Inventory, len(objects))
	}
	for _, o := range objects {
		if err := d.checkOwned(ctx, name, o); err != nil {
			return err
		}
	}
	pods, err := d.checkPods(ctx, name)
	if err != nil {
		return err
	}
	d.sayf("Checked: %s has %d objects at %s, applied by its own field manager; Pods running: %d.",
		name, b.Status.Objects.Applied, shorten(b.Status.Applied.Revision), pods)
	return nil
}

func (d *demo) checkOwned(ctx context.Context, name string, o *unstructured.Unstructured) error {
	live, err := d.cluster.find(ctx, o)
	if err != nil || live == nil {
		return errors.Join(fmt.Errorf("%s does not exist", describe(o)), err)
	}
	labels := live.GetLabels()
	if labels[v1alpha1.DeploymentLabel] != name || labels[v1alpha1.NamespaceLabel] != samplesNamespace {
		return fmt.Errorf("%s does not carry the labels of its deployment: %v", describe(o), labels)
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == "satchel/"+samplesNamespace+"/"+name && entry.Operation == metav1.ManagedFieldsOperationApply {
			return nil
		}
	}
	return fmt.Errorf("%s was not applied by the field manager of its deployment", describe(o))
}

// checkPods counts the running Pods of the Deployment of the given name.
func (d *demo) checkPods(ctx context.Context, name string) (int, error) {
	var deployment appsv1.Deployment
	if err := d.cluster.Get(ctx, types.NamespacedName{Namespace: samplesNamespace, Name: name}, &deployment); err != nil {
		return 0, err
	}
	var pods corev1.PodList
	err := d.cluster.List(ctx, &pods, client.InNamespace(samplesNamespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	if err != nil {
		return 0, err
	}
	running := 0
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running++
		}
	}
	if running < int(*deployment.Spec.Replicas) {
		return running, fmt.Errorf("%d of the %d Pods of %s run", running, *deployment.Spec.Replicas, name)
	}
	return running, nil
}

// image returns the image of the operator's Deployment.
func (d *demo) image(ctx context.Context) (string, error) {
	var deployment appsv1.Deployment
	err := d.cluster.Get(ctx, types.NamespacedName{Namespace: samplesNamespace, Name: operatorName}, &deployment)
	if err != nil {
		return "", err
	}
	return deployment.Spec.Template.Spec.Containers[0].Image, nil
}

func (d *demo) checkImage(ctx context.Context, want string) error {
	got, err := d.image(ctx)
	if err == nil && got != want {
		err = fmt.Errorf("the operator runs the image %s, want %s", got, want)
	}
	return err
}
