// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// makeUsable creates the nodes and the storage class, and waits until Pods could run.
func (cp *ControlPlane) makeUsable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(cp.rest)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	for i := range max(cp.opts.Nodes, 0) {
		_, err := client.CoreV1().Nodes().Create(ctx, newNode(i), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating a node: %w", err)
		}
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, newStorageClass(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the storage class: %w", err)
	}
	if err := waitFor(ctx, func(ctx context.Context) error { return nodesReady(ctx, client) }); err != nil {
		return fmt.Errorf("waiting for the nodes, see %s: %w", cp.kwok.LogPath(), err)
	}
	if err := waitFor(ctx, serviceAccountExists(client, metav1.NamespaceDefault)); err != nil {
		return fmt.Errorf("waiting for the controllers, see %s: %w", cp.controllerManager.LogPath(), err)
	}
	return nil
}

func newNode(index int) *corev1.Node {
	name := "node-" + strconv.Itoa(index)
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname:            name,
			corev1.LabelOSStable:            "linux",
			corev1.LabelArchStable:          runtime.GOARCH,
			"type":                          "kwok",
			"node-role.kubernetes.io/agent": "",
		},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
}

func newStorageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "kwok-volume",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "kwok.x-k8s.io/volume",
	}
}

// nodesReady returns an error that names a node which is not ready, or tainted still.
func nodesReady(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s is tainted with %s", node.Name, node.Spec.Taints[0].Key)
		}
		if !nodeReady(node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	return nil
}

func nodeReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// serviceAccountExists checks for the account without which no Pod is admitted.
func serviceAccountExists(client kubernetes.Interface, namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// waitFor polls until the check succeeds or the context ends; the error is then the check's last.
func waitFor(ctx context.Context, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(healthPoll):
		}
	}
}
