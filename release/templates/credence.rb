class Credence < Formula
  desc "Identities for Kubernetes workloads"
  homepage "https://github.com/credence-id/credence"
  version "{{slice .Version 1}}"
  license "Apache-2.0"
{{range .Archives}}{{if ne .OS "windows"}}
  on_{{if eq .OS "darwin"}}macos{{else}}{{.OS}}{{end}} do
    on_{{if eq .Architecture "amd64"}}intel{{else}}arm{{end}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}{{end}}
  def install
    bin.install "credence", "credence-credential"
    bin.install_symlink "credence" => "kubectl-credence"
    generate_completions_from_executable(bin/"credence", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/credence version")
  end
end
