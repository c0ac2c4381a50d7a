//! Files of every kind, read and written.

use std::path::{Path, PathBuf};

use super::*;

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("parlayout-{name}-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn reason(result: Result<Vec<u8>, FileError>) -> String {
    result.expect_err("it is refused").reason
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = folder("no-file");
    let check = |path: &Path, expected: &str| {
        for content in [Content::Settings, Content::Results, Content::Log] {
            assert_eq!(reason(read(path, content)), expected, "{}", path.display());
        }
    };
    check(&folder, "it is a folder");
    check(&folder.join("absent"), "there is no such file");
    check(Path::new("/dev/zero"), "it is a device or a pipe");
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    check(&pipe, "it is a device or a pipe");
}

#[test]
fn a_file_has_a_largest_size() {
    let path = folder("large").join("large.toml");
    let file = std::fs::File::create(&path).expect("writable");
    file.set_len(1 << 20).expect("writable");
    assert_eq!(
        read(&path, Content::Settings).map(|it| it.len()),
        Ok(1 << 20)
    );
    file.set_len((1 << 20) + 1).expect("writable");
    assert_eq!(
        reason(read(&path, Content::Settings)),
        "it is larger than 1 MiB"
    );
    assert!(read(&path, Content::Answer).is_ok());
}

#[test]
fn what_was_read_is_not_written_over() {
    let folder = folder("input");
    let (input, output) = (folder.join("input"), folder.join("output"));
    std::fs::write(&input, "read").expect("writable");
    write(&input, "before it is read").expect("it may be written");
    read_text(&input, Content::Runs).expect("it is text");
    let (link, hard) = (folder.join("link"), folder.join("hard"));
    std::fs::hard_link(&input, &hard).expect("links are possible");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&input, &link).expect("links are possible");
    for name in [&input, &hard, &link, &folder.join(".").join("input")] {
        let refused = write(name, "over").expect_err("it was read");
        assert!(refused.reason.contains("overwrite"), "{refused}");
    }
    write(&output, "one").expect("it is no input");
    write(&output, "two").expect("it is no input");
    let read = |path: &Path| std::fs::read_to_string(path).expect("text");
    assert_eq!(
        (read(&input), read(&output)),
        ("before it is read".into(), "two".into())
    );
    let files = std::fs::read_dir(&folder).expect("readable").count();
    assert_eq!(files, 4, "nothing is left beside");
}

#[cfg(unix)]
#[test]
fn a_link_still_points_to_what_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("link");
    let (file, link) = (folder.join("file"), folder.join("link"));
    std::fs::write(&file, "old").expect("writable");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("own file");
    std::os::unix::fs::symlink(&file, &link).expect("links are possible");
    write(&link, "new").expect("writable");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&file).expect("text"), "new");
    let mode = std::fs::metadata(&file)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
