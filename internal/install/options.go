// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The controllers, by the names of their Deployments, ServiceAccounts and images.
const (
	SourceController     = "bundle-source-controller"
	DeploymentController = "bundle-deployment-controller"
	RolloutController    = "bundle-rollout-controller"
)

// Controllers are those of every installation, which have volumes.
var Controllers = []string{SourceController, DeploymentController}

// ControllerValues are the keys of each controller's values in the chart.
var ControllerValues = map[string]string{
	SourceController: "sourceController", DeploymentController: "deploymentController", RolloutController: "rolloutController",
}

// Optional are the parts that an installation may have in addition, and the paths of the values in the chart that add them.
var Optional = map[string][]string{"rollouts": {"rollouts", "enabled"}}

const (
	// DefaultNamespace is where config/default puts the controllers.
	DefaultNamespace = "satchel-system"
	// PlaceholderRegistry is the registry in the chart and in config/default, where no images are published.
	PlaceholderRegistry = "registry.example.org/satchel"
)

// Options say how an installation differs from config/default, which is what the zero value means.
type Options struct {
	// Namespace is where the controllers run; default satchel-system.
	Namespace string `json:"namespace,omitempty"`
	// Values are those of the chart charts/satchel; Namespace takes precedence over namespace.name.
	Values map[string]any `json:"values,omitempty"`
	// Version is that of the program, and the default tag of the images; default dev.
	Version string `json:"-"`
}

// namespace is where the controllers run.
func (o Options) namespace() string { return cmp.Or(o.Namespace, DefaultNamespace) }

// version is the version of the application in the chart.
func (o Options) version() string { return cmp.Or(o.Version, "dev") }

// SetValue sets a value of the chart at a path of keys. A key on the way that is not a map is replaced.
func (o *Options) SetValue(value any, path ...string) {
	if o.Values == nil {
		o.Values = map[string]any{}
	}
	at := o.Values
	for _, key := range path[:len(path)-1] {
		next, isMap := at[key].(map[string]any)
		if !isMap {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
}

// RemoveValue removes a value of the chart, so that its default holds.
func (o *Options) RemoveValue(path ...string) { unstructured.RemoveNestedField(o.Values, path...) }

// withNamespace returns the values with the namespace of the controllers.
func (o Options) withNamespace() map[string]any {
	values := map[string]any{}
	maps.Copy(values, o.Values)
	namespace := map[string]any{}
	if given, isMap := values["namespace"].(map[string]any); isMap {
		maps.Copy(namespace, given)
	}
	namespace["name"] = o.namespace()
	values["namespace"] = namespace
	return values
}

// Images returns the references of the controllers' images in the objects of an installation, by the controller.
func Images(objects []*unstructured.Unstructured) map[string]string {
	images := map[string]string{}
	for _, o := range objects {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			container, _ := c.(map[string]any)
			if image, _ := container["image"].(string); o.GetKind() == "Deployment" {
				images[o.GetName()] = image
			}
		}
	}
	return images
}

// HasPlaceholders tells whether an image is one of the placeholder registry, where none is published.
func HasPlaceholders(objects []*unstructured.Unstructured) bool {
	for _, image := range Images(objects) {
		if strings.HasPrefix(image, PlaceholderRegistry+"/") {
			return true
		}
	}
	return false
}

// validate lists all problems that the schema of the chart does not report, or not well, sorted. Values are those of the chart
// with all defaults.
func validate(namespace string, values map[string]any) error {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	tenants, _, _ := unstructured.NestedStringSlice(values, "tenantNamespaces")
	for _, namespace := range append([]string{namespace}, tenants...) {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			add("the namespace %q: %s", namespace, problem)
		}
	}
	secrets, _, _ := unstructured.NestedStringSlice(values, "imagePullSecrets")
	for _, secret := range secrets {
		for _, problem := range validation.IsDNS1123Subdomain(secret) {
			add("the pull secret %q: %s", secret, problem)
		}
	}
	selector, _, _ := unstructured.NestedString(values, "watchLabelSelector")
	if _, err := labels.Parse(selector); err != nil {
		add("the selector %q: %v", selector, err)
	}
	persistent, _, _ := unstructured.NestedBool(values, "storage", "persistent")
	for _, controller := range Controllers {
		replicas, _, _ := unstructured.NestedFieldNoCopy(values, ControllerValues[controller], "replicas")
		count, isNumber := number(replicas)
		switch {
		case isNumber && count < 0:
			add("%v replicas of %s are too few", count, controller)
		case isNumber && count > 1 && persistent:
			add("%v replicas of %s cannot share a volume that is mounted once: choose one replica, or ephemeral storage (--ephemeral-storage, storage.persistent: false)", count, controller)
		}
	}
	return joined(problems)
}

// validateImages lists references that are none.
func validateImages(objects []*unstructured.Unstructured) error {
	var problems []string
	for controller, image := range Images(objects) {
		if _, err := name.ParseReference(image); err != nil {
			problems = append(problems, fmt.Sprintf("the image of %s: %v", controller, err))
		}
	}
	return joined(problems)
}

func joined(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return errors.New(strings.Join(slices.Compact(problems), "; "))
}

// number reads a number of YAML or JSON, or of a flag.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	}
	return 0, false
}
