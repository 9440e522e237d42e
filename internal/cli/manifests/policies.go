// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

// policyFlag is the flag of ImagePolicyFlag.
const policyFlag = "image-policy"

// ImagePolicyFlag adds --image-policy to a command.
func ImagePolicyFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVar(files, policyFlag, nil, "File or folder with BundleImagePolicies of one namespace, by which images are fetched or refused; may be repeated.")
	_ = cmd.MarkFlagFilename(policyFlag, "yaml", "yml", "json") // it only fails for a flag that does not exist
}

// ImagePolicies reads the BundleImagePolicies of --image-policy. They are of one namespace: those of the shared one and those of
// another one are evaluated each by itself, and files do not say which one is shared.
func ImagePolicies(ctx context.Context, files []string) ([]v1alpha1.BundleImagePolicy, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if slices.Contains(files, StandardInput) {
		return nil, errors.New("--image-policy takes a file or a folder, not standard input")
	}
	set, err := readFor("--"+policyFlag, files, nil)
	if err != nil {
		return nil, err
	}
	var policies []v1alpha1.BundleImagePolicy
	for _, o := range set.ofKind(v1alpha1.BundleImagePolicyKind) {
		var policy v1alpha1.BundleImagePolicy
		if err := o.decode(ctx, &policy); err != nil {
			return nil, err
		}
		if len(policies) > 0 && policies[0].Namespace != policy.Namespace {
			return nil, fmt.Errorf("--image-policy: the BundleImagePolicies are of the namespaces %q and %q: give those of one, such as the shared one", policies[0].Namespace, policy.Namespace)
		}
		policies = append(policies, policy)
	}
	if len(policies) == 0 {
		return nil, fmt.Errorf("--image-policy: there is no BundleImagePolicy in %s", strings.Join(files, ", "))
	}
	return policies, nil
}

// PoliciesOf reads the policies for a source. Secrets that are not in the files are those of the cluster: the user's own logins
// are used in their place, and signatures are not checked.
func PoliciesOf(ctx context.Context, a *kit.App, files []string, secrets *credentials.Secrets) (imagepolicy.Policies, error) {
	policies, err := ImagePolicies(ctx, files)
	if err != nil {
		return imagepolicy.Policies{}, err
	}
	for i := range policies {
		policies[i].Namespace = cmp.Or(policies[i].Namespace, secrets.Namespace)
		missing := func(ref *v1alpha1.LocalReference) bool {
			if ref == nil {
				return false
			}
			found, err := secrets.In(policies[i].Namespace).Find(ctx, ref.Name)
			return err == nil && found == nil // an error is reported when the Secret is used
		}
		for j := range policies[i].Spec.Images {
			rule := &policies[i].Spec.Images[j]
			for _, ref := range []**v1alpha1.LocalReference{&rule.SecretRef, &rule.CertSecretRef, &rule.ProxySecretRef} {
				if missing(*ref) {
					*ref = nil
				}
			}
			if rule.Verify != nil && (missing(rule.Verify.SecretRef) || missing(rule.Verify.TrustedRootSecretRef)) {
				rule.Verify = nil
				a.Note([]string{fmt.Sprintf("BundleImagePolicy %s demands a signature of images with the prefix %q, which is not checked here: its Secret is not in the files", policies[i].Name, rule.Prefix)})
			}
		}
	}
	return imagepolicy.Policies{Namespace: secrets.Namespace, Local: policies}, nil
}

// PlainMirrors are the hosts of mirrors that are reached over plain HTTP.
func PlainMirrors(policies imagepolicy.Policies) []string {
	var hosts []string
	for _, policy := range policies.Local {
		for _, rule := range policy.Spec.Images {
			if !rule.Insecure {
				continue
			}
			for _, place := range rule.Mirrors {
				host, _, _ := strings.Cut(place, "/")
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}
