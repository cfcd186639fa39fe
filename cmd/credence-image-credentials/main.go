// Command credence-image-credentials gives the kubelet passwords for private images, by the identity of a pod's service account.
package main

import (
	"github.com/credence-id/credence/internal/app/imagecredentials"
	"github.com/credence-id/credence/internal/app/serving"
)

func main() { serving.Main(imagecredentials.NewCommand()) }
