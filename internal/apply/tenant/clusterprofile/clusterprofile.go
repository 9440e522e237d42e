// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile finds how to connect to the cluster of a ClusterProfile of cluster-inventory-api. Access providers there are
// programs; none is executed here. The two of that project only read a Secret, and this package reads it as they do.
package clusterprofile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/satchel-dev/satchel/internal/apply/tenant/kubeyaml"
)

// Kind is the kind of ClusterProfiles, and Resource that of requests.
var (
	Kind     = inventory.GroupVersion.WithKind("ClusterProfile").GroupKind()
	Resource = inventory.GroupVersion.WithResource("clusterprofiles")
)

const (
	// secretExtension is what the access providers of the project read: it names the Secret.
	secretExtension = "client.authentication.k8s.io/exec"
	// programExtension begins the names of what only a program can use.
	programExtension = "clusterprofiles.multicluster.x-k8s.io/exec/"
	tokenKey         = "token"
)

// Error says that a ClusterProfile, or the Secret of its credentials, cannot be used.
type Error struct {
	// Missing: something does not exist, or cannot be read. Else it is refused.
	Missing bool
	text    string
}

// Error implements error.
func (e *Error) Error() string { return e.text }

func refused(format string, args ...any) error { return &Error{text: fmt.Sprintf(format, args...)} }

func missing(format string, args ...any) error {
	return &Error{Missing: true, text: fmt.Sprintf(format, args...)}
}

// Decode reads an object as a ClusterProfile.
func Decode(object *unstructured.Unstructured) (*inventory.ClusterProfile, error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the clusterprofile: %w", err)
	}
	profile := &inventory.ClusterProfile{}
	if err := json.Unmarshal(text, profile); err != nil {
		return nil, refused("it has another form than a ClusterProfile of %s: %v", inventory.GroupVersion, err)
	}
	return profile, nil
}

// Unhealthy tells whether the cluster manager says that the control plane of the cluster does not work.
func Unhealthy(profile *inventory.ClusterProfile) bool {
	return apimeta.IsStatusConditionFalse(profile.Status.Conditions, inventory.ClusterConditionControlPlaneHealthy)
}

// Access is how an access provider leads to a cluster.
type Access struct {
	// Secret is the name of the Secret with the credentials.
	Secret string
	// key of the Secret: with a kubeconfig, or with a token.
	key     string
	isToken bool
	context string // of the kubeconfig; its current one if empty
	cluster clientcmdv1.Cluster
}

// secretOf is the extension that names a Secret, in the forms of the access providers of the project.
type secretOf struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace"`
	Key         string `json:"key"`
	Context     string `json:"context"`
	ClusterName string `json:"clusterName"`
}

// Choose returns the access of a provider, or of the first one that can be used if provider is empty. The error is an *Error.
func Choose(profile *inventory.ClusterProfile, provider string) (*Access, error) {
	var reasons []string
	for _, one := range providers(profile) {
		if provider != "" && one.Name != provider {
			continue
		}
		access, err := accessOf(profile.Namespace, &one.Cluster)
		if err == nil {
			return access, nil
		}
		reasons = append(reasons, fmt.Sprintf("%.100q %s", one.Name, err))
	}
	switch {
	case len(reasons) > 0:
		return nil, refused("no access provider can be used: %s", strings.Join(reasons, "; "))
	case provider != "":
		return nil, missing("it has no access provider %q in status.accessProviders: wait for its cluster manager, or correct accessProvider", provider)
	}
	return nil, missing("it has no access provider in status.accessProviders: wait for its cluster manager, or use secretRef")
}

// mostProviders bounds how many are tried.
const mostProviders = 16

// providers are those of both fields; of two with the same name, the one in the field that is not deprecated.
func providers(profile *inventory.ClusterProfile) []inventory.AccessProvider {
	all := slices.Clone(profile.Status.AccessProviders)
	for _, old := range profile.Status.CredentialProviders { // deprecated, and still written by cluster managers
		if !slices.ContainsFunc(all, func(p inventory.AccessProvider) bool { return p.Name == old.Name }) {
			all = append(all, old)
		}
	}
	return all[:min(len(all), mostProviders)]
}

// accessOf reads one provider.
func accessOf(namespace string, cluster *clientcmdv1.Cluster) (*Access, error) {
	var names *secretOf
	for i := range cluster.Extensions {
		extension := &cluster.Extensions[i]
		switch {
		case strings.HasPrefix(extension.Name, programExtension):
			return nil, refused("needs a program (extension %s), and none is executed", extension.Name)
		case extension.Name == secretExtension:
			names = &secretOf{}
			if err := json.Unmarshal(extension.Extension.Raw, names); err != nil {
				return nil, refused("has an extension %s that is not an object with the name of a Secret", secretExtension)
			}
		}
	}
	access := &Access{cluster: *cluster}
	access.cluster.Extensions = nil
	switch {
	case names == nil:
		return nil, refused("has no extension %s, which names the Secret with the credentials, and no program is executed", secretExtension)
	case names.Namespace != "" && names.Namespace != namespace:
		return nil, refused("names a Secret of the namespace %.63q: only those of %s are read", names.Namespace, namespace)
	case names.Name != "" && names.Key != "":
		access.Secret = names.Name
		access.key = names.Key
		access.context = names.Context
	case names.ClusterName != "":
		access.Secret = names.ClusterName
		access.key = tokenKey
		access.isToken = true
	default:
		return nil, refused("has an extension %s without name and key of a Secret, and without clusterName", secretExtension)
	}
	return access, nil
}

// Kubeconfig is a kubeconfig of the server of the provider and the credentials in its Secret. What may be in it is for the reader of
// the kubeconfig to check. The error is an *Error, and has nothing of the content.
func (a *Access) Kubeconfig(secret map[string][]byte) ([]byte, error) {
	content, found := secret[a.key]
	if !found {
		return nil, missing("it has no key %q, which the clusterprofile names", a.key)
	}
	user := clientcmdv1.AuthInfo{Token: string(content)}
	if !a.isToken {
		var err error
		if user, err = a.userIn(content); err != nil {
			return nil, err
		}
	}
	const name = "clusterprofile"
	made := clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters:  []clientcmdv1.NamedCluster{{Name: name, Cluster: a.cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: user}},
		Contexts:  []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, refused("its kubeconfig cannot be encoded") // the error may quote a key
	}
	return text, nil
}

// userIn is the user of a context of a kubeconfig.
func (a *Access) userIn(content []byte) (clientcmdv1.AuthInfo, error) {
	var file clientcmdv1.Config
	err := kubeyaml.Unmarshal(content, &file)
	if errors.Is(err, kubeyaml.ErrAlias) {
		return clientcmdv1.AuthInfo{}, refused("the kubeconfig in its key %q %s", a.key, err)
	}
	if err != nil {
		return clientcmdv1.AuthInfo{}, refused("its key %q is not the YAML of a kubeconfig", a.key) // the error may quote a key
	}
	context := cmp.Or(a.context, file.CurrentContext)
	at := slices.IndexFunc(file.Contexts, func(c clientcmdv1.NamedContext) bool { return c.Name == context })
	if at < 0 {
		return clientcmdv1.AuthInfo{}, refused("the kubeconfig in its key %q has no context %.100q", a.key, context)
	}
	name := file.Contexts[at].Context.AuthInfo
	user := slices.IndexFunc(file.AuthInfos, func(u clientcmdv1.NamedAuthInfo) bool { return u.Name == name })
	if user < 0 {
		return clientcmdv1.AuthInfo{}, refused("the kubeconfig in its key %q has no user %.100q", a.key, name)
	}
	return file.AuthInfos[user].AuthInfo, nil
}
