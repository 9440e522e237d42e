// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// Resources of the controllers' namespace.
var (
	WorkloadsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	PodsResource      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	LeasesResource    = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	PoliciesResource  = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	ServicesResource  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// ControllerNames are the two controllers. Shards have names that begin so.
var ControllerNames = []string{"bundle-source-controller", "bundle-deployment-controller"}

// PartOfSatchel selects what config/ installs.
const PartOfSatchel = "app.kubernetes.io/part-of=satchel"

// Installed lists objects of the controllers' namespace.
func (e *Examiner) Installed(ctx context.Context, resource schema.GroupVersionResource, selector string) ([]unstructured.Unstructured, error) {
	list, err := e.Bodies.Resource(resource).Namespace(e.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: kit.PageOfMetadata})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// controllers checks that both controllers run, and in which version.
func (e *Examiner) controllers(ctx context.Context) {
	const check = "Controllers"
	workloads, err := e.Installed(ctx, WorkloadsResource, PartOfSatchel)
	if err != nil {
		e.add(check, CheckUnknown, "", "the Deployments of the namespace %s cannot be listed: %s", e.Namespace, e.WhyNot(err))
		return
	}
	for _, name := range ControllerNames {
		if !slices.ContainsFunc(workloads, func(w unstructured.Unstructured) bool { return isController(&w, name) }) {
			e.add(check, CheckFailed, "Install it with satchel install, or say with --system-namespace where it is.", "there is no %s in the namespace %s", name, e.Namespace)
		}
	}
	for i := range workloads {
		e.controller(ctx, &workloads[i])
	}
}

func isController(w *unstructured.Unstructured, name string) bool {
	return strings.HasPrefix(w.GetName(), name) || w.GetLabels()["app.kubernetes.io/name"] == name
}

// controller checks the Deployment of one controller.
func (e *Examiner) controller(ctx context.Context, w *unstructured.Unstructured) {
	check := "Controller " + w.GetName()
	wanted, found, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
	if !found {
		wanted = 1
	}
	available, _, _ := unstructured.NestedInt64(w.Object, "status", "availableReplicas")
	images := strings.Join(ImagesOf(w), ", ")
	switch {
	case wanted == 0:
		e.add(check, CheckFailed, "Scale it up: nothing is reconciled.", "it is scaled to 0 replicas")
	case available < wanted:
		state := CheckFailed
		if available > 0 {
			state = CheckWarning
		}
		e.add(check, state, "See kubectl describe pods and logs in the namespace "+e.Namespace+"; debug dump collects both.", "%d of %d replicas are available, image %s%s", available, wanted, images, e.PodTrouble(ctx, w))
	default:
		e.add(check, CheckOK, "", "%s available, image %s", view.Plural(int(available), "replica"), images)
	}
	if tag := VersionTag(images); tag != "" && e.Report.Program.Version != tag && !strings.HasPrefix(e.Report.Program.Version, "devel") {
		e.add(check+" version", CheckWarning, "Use the program of the same release.", "it is %s, and this program %s", tag, e.Report.Program.Version)
	}
}

// ImagesOf are the images of a workload's containers.
func ImagesOf(w *unstructured.Unstructured) []string {
	var images []string
	containers, _, _ := unstructured.NestedSlice(w.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		one, _ := c.(map[string]any)
		image, _ := one["image"].(string)
		images = append(images, image)
	}
	return images
}

// VersionTag is the tag of an image, where it is a version.
func VersionTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	tag := image[strings.LastIndexByte(image, ':')+1:]
	if len(tag) > 1 && tag[0] == 'v' && tag[1] >= '0' && tag[1] <= '9' && !strings.Contains(tag, "/") {
		return tag
	}
	return ""
}

// PodTrouble says why the Pods of a workload do not run, as far as their status says it.
func (e *Examiner) PodTrouble(ctx context.Context, w *unstructured.Unstructured) string {
	pods, err := e.Installed(ctx, PodsResource, "app.kubernetes.io/name="+w.GetLabels()["app.kubernetes.io/name"])
	if err != nil {
		return ""
	}
	for i := range pods {
		pod := &pods[i]
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
		for _, s := range statuses {
			one, _ := s.(map[string]any)
			if reason, message := waitingOf(one); reason != "" {
				return fmt.Sprintf("; Pod %s: %s %s", pod.GetName(), reason, message)
			}
		}
		if status, reason, message := ConditionOf(pod, "PodScheduled"); status == "False" {
			return fmt.Sprintf("; Pod %s: %s %s", pod.GetName(), reason, message)
		}
	}
	return ""
}

func waitingOf(status map[string]any) (reason, message string) {
	reason, _, _ = unstructured.NestedString(status, "state", "waiting", "reason")
	message, _, _ = unstructured.NestedString(status, "state", "waiting", "message")
	return reason, message
}

// staleAfter is for how much longer than its duration a lease may be old: clocks differ.
const staleAfter = 30 * time.Second

// leaders checks that each controller has a leader that renews its lease.
func (e *Examiner) leaders(ctx context.Context) {
	const check = "Leaders"
	leases, err := e.Installed(ctx, LeasesResource, "")
	if err != nil {
		e.add(check, CheckUnknown, "", "the leases of the namespace %s cannot be listed: %s", e.Namespace, e.WhyNot(err))
		return
	}
	for _, name := range ControllerNames {
		seen := false
		for i := range leases {
			if strings.HasPrefix(leases[i].GetName(), name) {
				seen = true
				e.Leader(&leases[i])
			}
		}
		if !seen {
			e.add(check, CheckWarning, "Nothing, where it runs once and without --enable-leader-election.", "%s holds no lease in the namespace %s", name, e.Namespace)
		}
	}
}

// Leader checks that the holder of a lease renews it.
func (e *Examiner) Leader(lease *unstructured.Unstructured) {
	check := "Leader of " + lease.GetName()
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	renewed, err := time.Parse(time.RFC3339Nano, text)
	age := e.Now.Sub(renewed).Round(time.Second)
	const hint = "See whether its Pods run and reach the API server; nothing is reconciled meanwhile."
	switch {
	case holder == "" || err != nil:
		e.add(check, CheckFailed, hint, "there is no leader")
	case age > time.Duration(seconds)*time.Second+staleAfter:
		e.add(check, CheckFailed, hint, "%s led, and has not renewed its lease for %s", holder, age)
	default:
		e.add(check, CheckOK, "", "%s leads, and renewed its lease %s ago", holder, max(0, age))
	}
}
