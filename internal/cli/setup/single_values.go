// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/install"
)

// singleValues are the flags of install that set one value of the chart each.
type singleValues struct {
	registry, tag, storageClass, selector string
	images, storageSizes                  map[string]string // by controller
	pullSecrets, tenants, with            []string
	replicas                              int64
	ephemeral, policies, authenticated    bool
}

func (v *singleValues) flags(flags *pflag.FlagSet) {
	flags.StringVar(&v.registry, "registry", "", "What the names of the images begin with, such as registry.example.com/satchel.")
	flags.StringVar(&v.tag, "tag", "", "The tag of the images; by default the version of this program.")
	flags.StringToStringVar(&v.images, "image", nil, "The image of a controller in full, such as bundle-source-controller=REFERENCE; may be repeated.")
	flags.StringSliceVar(&v.pullSecrets, "pull-secret", nil, "A Secret in the controllers' namespace with which the images are pulled; may be repeated.")
	flags.StringSliceVar(&v.with, "with", nil, "Install an optional part as well. One of: "+strings.Join(optionalParts(), ", ")+".")
	flags.Int64Var(&v.replicas, "replicas", 1, "Replicas of each controller, one of them the leader; more than 1 needs --ephemeral-storage.")
	flags.BoolVar(&v.ephemeral, "ephemeral-storage", false, "Keep artifacts and caches with the Pods instead of in volumes: a restart fetches everything again.")
	flags.StringVar(&v.storageClass, "storage-class", "", "The storage class of the volumes; by default that of the cluster.")
	flags.StringToStringVar(&v.storageSizes, "storage-size", nil, "The size of a controller's volume, such as bundle-source-controller=50Gi; may be repeated.")
	flags.StringVar(&v.selector, "watch-label-selector", "", "Reconcile only objects with matching labels.")
	flags.BoolVar(&v.policies, "network-policies", true, "Install the NetworkPolicies of the controllers.")
	flags.BoolVar(&v.authenticated, "authenticated-artifacts", false, "Have the artifact server ask for tokens; Flux cannot load artifacts then.")
	flags.StringSliceVar(&v.tenants, "tenant-namespace", nil, "Let the controllers impersonate ServiceAccounts and read Secrets in this namespace only, instead of in all; may be repeated.")
}

// set sets the values of the flags that were given.
func (v *singleValues) set(o *install.Options, given func(flag string) bool) error {
	for _, flag := range []struct {
		name  string
		value any
		path  []string
	}{
		{"registry", v.registry, []string{"image", "registry"}},
		{"tag", v.tag, []string{"image", "tag"}},
		{"pull-secret", list(v.pullSecrets), []string{"imagePullSecrets"}},
		{"replicas", v.replicas, []string{"sourceController", "replicas"}},
		{"replicas", v.replicas, []string{"deploymentController", "replicas"}},
		{"replicas", v.replicas, []string{"rolloutController", "replicas"}},
		{"ephemeral-storage", !v.ephemeral, []string{"storage", "persistent"}},
		{"storage-class", v.storageClass, []string{"storage", "className"}},
		{"watch-label-selector", v.selector, []string{"watchLabelSelector"}},
		{"network-policies", v.policies, []string{"networkPolicies", "enabled"}},
		{"authenticated-artifacts", v.authenticated, []string{"authenticatedArtifacts"}},
		{"tenant-namespace", list(v.tenants), []string{"tenantNamespaces"}},
	} {
		if given(flag.name) {
			o.SetValue(flag.value, flag.path...)
		}
	}
	for _, part := range v.with {
		path, known := install.Optional[part]
		if !known {
			return fmt.Errorf("--with: there is no optional part %q: choose from %s", part, strings.Join(optionalParts(), ", "))
		}
		o.SetValue(true, path...)
	}
	for key, byController := range map[string]map[string]string{"image": v.images, "storageSize": v.storageSizes} {
		for controller, value := range byController {
			values, known := install.ControllerValues[controller]
			if !known {
				return fmt.Errorf("there is no controller %q: choose from %s", controller, strings.Join(slices.Sorted(maps.Keys(install.ControllerValues)), ", "))
			}
			if key == "storageSize" && controller == install.RolloutController {
				return fmt.Errorf("--storage-size: %s has no volume", controller)
			}
			o.SetValue(value, values, key)
		}
	}
	return nil
}

// optionalParts are the words that --with takes.
func optionalParts() []string { return slices.Sorted(maps.Keys(install.Optional)) }

// list is a list as JSON has it.
func list(items []string) []any {
	values := make([]any, 0, len(items))
	for _, item := range items {
		values = append(values, item)
	}
	return values
}
