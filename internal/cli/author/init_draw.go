// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/rbac"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/scaffold"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/view"
)

// Names of what init writes.
const (
	bundleFolder   = "bundle"
	deploymentFile = "deploy/bundledeployment.yaml"
	rbacFile       = "permissions/rbac.yaml"
)

// drawUp returns the files that init writes, by their names in the folder. A bundle that could not be installed is refused.
func drawUp(ctx context.Context, a *kit.App, o *initOptions, taken scaffold.Bundle) (map[string][]byte, error) {
	result, err := convertTaken(ctx, a, o, taken)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, content := range taken.Files {
		files[bundleFolder+"/"+name] = content
	}
	if files[deploymentFile], err = o.deploymentText(taken); err != nil {
		return nil, err
	}
	named := rbac.Options{ConversionOptions: bundle.ConversionOptions{InstallNamespace: o.installNamespace}, Deployment: o.name, Named: true,
		Namespace: o.namespace, ServiceAccount: o.serviceAccount}
	request, guesses := named.Request(result)
	parts, err := rights.Manifests(request)
	if err != nil {
		return nil, fmt.Errorf("the permissions cannot be determined: %w", err)
	}
	files[rbacFile], err = rbac.PartsText(parts, "", guesses.Comments())
	for _, line := range taken.Notes {
		fmt.Fprintln(a.Streams.ErrOut, view.Inline(line)+".")
	}
	a.Note(kit.InFlags(result.Warnings))
	a.Note(guesses.Notes())
	return files, err
}

// convertTaken converts the bundle as it will be written.
func convertTaken(ctx context.Context, a *kit.App, o *initOptions, taken scaffold.Bundle) (result convert.Result, err error) {
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return result, fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := writing{dir: dir, Create: SortedKeys(taken.Files)}
	if err := w.write(taken.Files); err != nil {
		return result, err
	}
	files, err := bundle.OpenFolder(dir)
	if err != nil {
		return result, err
	}
	defer files.Close() //nolint:errcheck // only read from
	result, err = a.Converted(ctx, files, spec.Conversion(o.deployment(taken), spec.Given{}, o.limits))
	if err != nil && taken.Format == convert.RegistryV1 && len(o.watchNamespaces) == 0 {
		o.watchNamespaces = []string{o.installNamespace} // an operator of the mode OwnNamespace supports nothing else
		var again error
		if result, again = a.Converted(ctx, files, spec.Conversion(o.deployment(taken), spec.Given{}, o.limits)); again != nil {
			o.watchNamespaces = nil
		} else {
			err = nil
		}
	}
	if err != nil {
		return result, kit.Refused(err, false)
	}
	return result, ctx.Err()
}

// placeholder begins the image of a bundle without --image and --git.
const placeholder = "registry.example.com/"

// deployment is the BundleDeployment that installs the bundle.
func (o *initOptions) deployment(taken scaffold.Bundle) *v1alpha1.BundleDeployment {
	d := &v1alpha1.BundleDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleDeploymentKind},
		ObjectMeta: metav1.ObjectMeta{Name: o.name, Namespace: o.namespace},
	}
	d.Spec.Source = &v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{o.source()}}
	d.Spec.Path, d.Spec.Format, d.Spec.ServiceAccountName = taken.Path, v1alpha1.Format(taken.Format), o.serviceAccount
	if o.installNamespace != o.namespace {
		d.Spec.Target.Namespace = o.installNamespace
	}
	if len(o.watchNamespaces) > 0 && taken.Format == convert.RegistryV1 {
		d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{WatchNamespaces: o.watchNamespaces}
	}
	return d
}

// deploymentText is the BundleDeployment as people write it.
func (o *initOptions) deploymentText(taken scaffold.Bundle) ([]byte, error) {
	plain, err := printer.PlainOf(o.deployment(taken))
	if err != nil {
		return nil, err
	}
	text, err := printer.YamlText(plain)
	if err != nil {
		return nil, fmt.Errorf("writing the BundleDeployment: %w", err)
	}
	var out bytes.Buffer
	if o.image == "" && o.git == "" {
		out.WriteString("# The image is a placeholder: replace it by the one that the bundle is pushed as.\n")
	}
	out.Write(text)
	return out.Bytes(), nil
}

// source is where the bundle will come from.
func (o *initOptions) source() v1alpha1.Source {
	if o.git == "" {
		image := o.image
		if image == "" {
			image = placeholder + o.name + ":v0.1.0"
		}
		return v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: image}}
	}
	return v1alpha1.Source{Git: &v1alpha1.GitSource{URL: o.git, Ref: &v1alpha1.GitRef{Branch: o.branch}, Path: o.inRepository()}}
}

// inRepository is the path of the bundle in the Git repository around it; without a repository it is taken from the root.
func (o *initOptions) inRepository() string {
	whole, err := filepath.Abs(filepath.Join(o.dir, bundleFolder))
	if err != nil {
		return bundleFolder
	}
	for root := filepath.Dir(whole); ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			if inside, err := filepath.Rel(root, whole); err == nil {
				return filepath.ToSlash(inside)
			}
		}
		if root == filepath.Dir(root) {
			break
		}
	}
	return strings.TrimPrefix(filepath.ToSlash(filepath.Join(filepath.Base(o.dir), bundleFolder)), "./")
}
