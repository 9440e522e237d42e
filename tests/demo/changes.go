// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// repair edits an object and deletes another, and waits until both are as the bundles have them.
func (d *demo) repair(ctx context.Context) error {
	d.chapterf("Break it: edit one object, delete another")
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.org/not-in-the-bundle:v1"}]`)
	edited := object("apps/v1", "Deployment", samplesNamespace, operatorName)
	if err := d.cluster.Patch(ctx, edited, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("another-client")); err != nil {
		return fmt.Errorf("editing %s: %w", describe(edited), err)
	}
	broken := time.Now()
	d.sayf("Another client changed the image of %s.", describe(edited))
	err := d.await(ctx, "the image to be repaired", func(ctx context.Context) (string, error) {
		image, err := d.image(ctx)
		if image == imageV1 {
			return "", err
		}
		return "the image is " + image, err
	})
	if err != nil {
		return err
	}
	d.sayf("Repaired after %s: the image is %s again.", time.Since(broken).Round(100*time.Millisecond), imageV1)
	return d.repairDeleted(ctx, object("v1", "Service", samplesNamespace, greeterName))
}

func (d *demo) repairDeleted(ctx context.Context, deleted *unstructured.Unstructured) error {
	if err := d.cluster.Delete(ctx, deleted.DeepCopy()); err != nil {
		return fmt.Errorf("deleting %s: %w", describe(deleted), err)
	}
	broken := time.Now()
	d.sayf("Another client deleted %s.", describe(deleted))
	err := d.await(ctx, describe(deleted)+" to come back", func(ctx context.Context) (string, error) {
		live, err := d.cluster.find(ctx, deleted)
		if live == nil {
			return "it does not exist", err
		}
		return "", err
	})
	if err != nil {
		return err
	}
	d.sayf("Repaired after %s: %s is back.", time.Since(broken).Round(100*time.Millisecond), describe(deleted))
	return nil
}

// upgrade commits the next version and follows it.
func (d *demo) upgrade(ctx context.Context) error {
	d.chapterf("Upgrade %s from v0.1.0 to v0.2.0 by a commit", operatorName)
	before, err := d.deployment(ctx, operatorName)
	if err != nil {
		return err
	}
	if err := d.commit("Upgrade the sample operator", "v0.2.0"); err != nil {
		return err
	}
	if err := d.pull(ctx); err != nil {
		return err
	}
	if err := d.await(ctx, "the upgrade", d.ready(operatorName, before.Status.Applied.Revision)); err != nil {
		return err
	}
	pruned := object("v1", "ConfigMap", samplesNamespace, "sample-operator-phrases")
	err = d.await(ctx, describe(pruned)+", which v0.2.0 does not have, to go", d.gone(pruned))
	if err != nil {
		return err
	}
	d.sayf("Pruned: %s, which v0.2.0 does not have.", describe(pruned))
	added := object("v1", "ConfigMap", samplesNamespace, "sample-operator-languages")
	return errors.Join(d.checkObjects(ctx, operatorName, append(operatorObjects(), added)), d.checkImage(ctx, imageV2))
}

// gone checks that an object does not exist.
func (d *demo) gone(o *unstructured.Unstructured) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		live, err := d.cluster.find(ctx, o)
		if live != nil {
			return describe(o) + " still exists", err
		}
		return "", err
	}
}

// removeDeployments deletes both deployments and checks that what they installed goes, save the CRD.
func (d *demo) removeDeployments(ctx context.Context) error {
	d.chapterf("Remove both: everything is deleted but the CRD, because users may have objects of it")
	var objects []*unstructured.Unstructured
	for _, name := range []string{operatorName, greeterName} {
		objects = append(objects, object(v1alpha1.GroupVersion.String(), v1alpha1.BundleDeploymentKind, samplesNamespace, name))
	}
	for _, o := range objects {
		if err := d.cluster.Delete(ctx, o.DeepCopy()); err != nil {
			return fmt.Errorf("deleting %s: %w", describe(o), err)
		}
	}
	crd := operatorObjects()[0]
	for _, o := range append(objects, append(operatorObjects()[1:], greeterObjects()...)...) {
		if err := d.await(ctx, "the removal", d.gone(o)); err != nil {
			return err
		}
	}
	live, err := d.cluster.find(ctx, crd)
	if err != nil || live == nil {
		return errors.Join(errors.New("the CRD was removed although that was not requested"), err)
	}
	d.sayf("Checked: all objects of both bundles are gone, the CRD %s is kept.", crd.GetName())
	return nil
}

// removeSamples removes from an existing cluster what the demo applied, deployments first, and the CRD that a
// removal keeps.
func (d *demo) removeSamples(ctx context.Context) error {
	var deployments, others []*unstructured.Unstructured
	for _, o := range d.applied {
		if strings.HasPrefix(o.GetKind(), "Bundle") {
			deployments = append(deployments, o)
		} else {
			others = append(others, o)
		}
	}
	return errors.Join(
		d.cluster.remove(ctx, deployments),
		d.cluster.remove(ctx, append(others, operatorObjects()[0])),
	)
}
