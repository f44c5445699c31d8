# Stand-in toolkit, shared by nvidia-ctk, nvidia-container-runtime and nvidia-cdi-hook: JSON, and what a container is given.
# perl-base has no JSON module. Here a value is either its own JSON text (strings with their quotes, numbers, true, null) or
# {object => [[key text, value], ...]} or {array => [value, ...]}: what isn't touched comes out as it went in, in order.
package StandIn;
use strict;
use warnings;

our $driver = '/run/simulated-gpu/driver';
our $libraries = -e '/usr/lib64/libnvidia-ml.so.1' ? '/usr/lib64' : '/usr/lib/x86_64-linux-gnu';

sub slurp { my ($path) = @_; open my $in, '<', $path or die "open $path: \l$!\n"; local $/; my $text = <$in>; return $text // '' }

sub spew {    # into place by rename: readers see the old file or the new one
    my ($path, $text) = @_;
    (my $folder = $path) =~ s{/[^/]*$}{};
    system('mkdir', '-p', $folder) == 0 or die "mkdir $folder failed\n";
    open my $out, '>', "$path.new" or die "open $path.new: \l$!\n";
    print $out $text;
    close $out or die "write $path.new: \l$!\n";
    rename "$path.new", $path or die "rename to $path: \l$!\n";
}

sub parse { my ($text) = @_; my $value = value(\$text); $text =~ /\G\s*\z/gc or fail(\$text); return $value }

sub fail {
    my ($text) = @_;
    my $rest = substr $$text, pos($$text) // 0;
    die $rest =~ /^\s*(\S)/ ? "invalid character '$1' in JSON\n" : "unexpected end of JSON input\n";
}

sub value {
    my ($text) = @_;
    $$text =~ /\G\s*/gc;
    return $1 if $$text =~ /\G("(?:[^"\\[:cntrl:]]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)/gc;
    if ($$text =~ /\G\{\s*/gc) {
        my @pairs;
        return {object => \@pairs} if $$text =~ /\G\}/gc;
        while (1) {
            $$text =~ /\G\s*("(?:[^"\\[:cntrl:]]|\\.)*")\s*:/gc or fail($text);
            my $key = $1;
            push @pairs, [$key, value($text)];
            return {object => \@pairs} if $$text =~ /\G\s*\}/gc;
            $$text =~ /\G\s*,/gc or fail($text);
        }
    }
    if ($$text =~ /\G\[\s*/gc) {
        my @items;
        return {array => \@items} if $$text =~ /\G\]/gc;
        while (1) {
            push @items, value($text);
            return {array => \@items} if $$text =~ /\G\s*\]/gc;
            $$text =~ /\G\s*,/gc or fail($text);
        }
    }
    fail($text);
}

sub text {    # JSON of a value, indented by four blanks a level as Go's MarshalIndent does for the real tools
    my ($value, $indent) = (@_, '');
    return $value if !ref $value;
    my ($inner, @parts) = ("$indent    ");
    if ($value->{object}) {
        @parts = map { "$inner$_->[0]: " . text($_->[1], $inner) } @{$value->{object}};
        return @parts ? "{\n" . join(",\n", @parts) . "\n$indent}" : '{}';
    }
    @parts = map { $inner . text($_, $inner) } @{$value->{array}};
    return @parts ? "[\n" . join(",\n", @parts) . "\n$indent]" : '[]';
}

sub string { my ($plain) = @_; $plain =~ s/(["\\])/\\$1/g; return "\"$plain\"" }
sub plain { my ($json) = @_; $json =~ s/^"|"$//g; $json =~ s/\\(["\\\/])/$1/g; return $json }
sub array { return {array => [@_]} }
sub object { my @pairs; while (my ($key, $value) = splice @_, 0, 2) { push @pairs, [string($key), $value] } return {object => \@pairs} }

sub at {    # the value of a key, or undef
    my ($object, $key) = @_;
    return undef if ref $object ne 'HASH' || !$object->{object};
    for (@{$object->{object}}) { return $_->[1] if plain($_->[0]) eq $key }
    return undef;
}

sub put {
    my ($object, $key, $value) = @_;
    for (@{$object->{object}}) { if (plain($_->[0]) eq $key) { $_->[1] = $value; return $value } }
    push @{$object->{object}}, [string($key), $value];
    return $value;
}

sub within {    # the object or array under a key, made when it isn't there
    my ($object, $key, $empty) = @_;
    my $found = at($object, $key);
    return ref $found ? $found : put($object, $key, $empty);
}

sub gpus {    # ({index, uuid, path}, ...) as NVML lists them; dies in the real toolkit's words
    -e "$libraries/libnvidia-ml.so.1" && -x '/usr/bin/nvidia-smi' or die "failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND\n";
    my $text = `/usr/bin/nvidia-smi -q -x`;
    my $code = $? >> 8;
    my %words = (9 => 'Driver Not Loaded', 18 => 'Driver/library version mismatch', 12 => 'ERROR_LIBRARY_NOT_FOUND', 6 => 'No devices were found');
    die 'failed to initialize NVML: ' . ($words{$code} // 'Unknown Error') . "\n" if $code != 0;
    my @gpus;
    push @gpus, {index => scalar @gpus, uuid => $1, path => "/dev/nvidia$2"} while $text =~ m{<uuid>(.*?)</uuid>.*?<minor_number>(\d+)<}gs;
    return @gpus;
}

sub common {    # what every container with a GPU is given: nodes, files, links and the folders whose libraries ldconfig shall find
    my $version = slurp("$driver/version");
    chomp $version;
    my @files = grep { -e } "$libraries/libcuda.so.$version", "$libraries/libnvidia-ml.so.$version", '/usr/bin/nvidia-smi';
    my @links = map { ["$_.so.$version", "$libraries/$_.so.1"], ["$_.so.1", "$libraries/$_.so"] } qw(libcuda libnvidia-ml);
    return {
        nodes => [grep { -e } qw(/dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidiactl)],
        # on a real host a container reaches the driver through its device nodes alone; the simulated one needs its folder, too
        files => [@files, $driver],
        links => \@links,
        folders => [$libraries],
    };
}

sub hooks {    # argument lists of nvidia-cdi-hook
    my ($common) = @_;
    return ['nvidia-cdi-hook', 'create-symlinks', map { ('--link', "$_->[0]::$_->[1]") } @{$common->{links}}],
        ['nvidia-cdi-hook', 'update-ldcache', map { ('--folder', $_) } @{$common->{folders}}];
}

sub number {    # (major, minor) of a device node
    my ($path) = @_;
    my @stat = stat $path or die "failed to stat $path: \l$!\n";
    -c _ or die "$path is not a character device\n";
    return (($stat[6] >> 8) & 0xfff, ($stat[6] & 0xff) | (($stat[6] >> 12) & 0xfff00));
}

1;
